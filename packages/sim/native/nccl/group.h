// Groups: what is asked for between ncclGroupStart and ncclGroupEnd starts together.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "communicator.h"

namespace shoal::nccl {

// What may have to wait for other ranks, and so runs by itself: the ranks of one thread must not wait for each other.
struct Job {
  std::vector<std::shared_ptr<Communicator>>
      communicators;  // in progress meanwhile; the first says whether the caller waits
  std::function<ncclResult_t()> run;
  std::function<void()> undo;  // when it failed, or never ran, and the caller waited for it
  bool saysSuccess = false;    // instead of ncclInProgress, outside a group: some functions of NCCL do
};

// Both act at once outside a group, and at the end of the outermost group inside one.
ncclResult_t submitTask(const std::shared_ptr<Communicator>& communicator, const Task& task, CUstream stream);
ncclResult_t submitJob(Job job);

// Remembers the first error of the group of this thread, if it is in one; returns it unchanged.
ncclResult_t noteError(ncclResult_t result);

}  // namespace shoal::nccl

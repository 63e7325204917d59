// Groups: calls between ncclGroupStart and ncclGroupEnd start together.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "communicator.h"

namespace shoal::nccl {

// Work that may wait for other ranks. Each job runs on its own thread, because the ranks of one thread must not wait
// for each other.
struct Job {
  std::vector<std::shared_ptr<Communicator>>
      communicators;  // in progress while the job runs; the first one says whether the caller waits
  std::function<ncclResult_t()> run;
  std::function<void()> undo;  // called if the job failed or never ran, and the caller waited for it
  // returns ncclSuccess instead of ncclInProgress outside a group, as some NCCL functions do
  bool saysSuccess = false;
};

// Both act at once outside a group, and at the end of the outermost group inside a group.
ncclResult_t submitTask(const std::shared_ptr<Communicator>& communicator, const Task& task, CUstream stream);
ncclResult_t submitJob(Job job);

// Stores the first error of this thread's group, if there is a group. Returns the result unchanged.
ncclResult_t noteError(ncclResult_t result);

}  // namespace shoal::nccl

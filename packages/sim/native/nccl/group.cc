#include "group.h"

#include <pthread.h>

#include <thread>
#include <vector>

#include "guard.h"
#include "problem.h"

namespace shoal::nccl {

namespace {

struct PendingTask {
  std::shared_ptr<Communicator> communicator;
  CUstream stream;
  Task task;
};

struct PendingInitialisation {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t* result;
};

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<PendingTask> tasks;
  std::vector<PendingInitialisation> initialisations;
};

Group& group() {
  thread_local Group own;
  return own;
}

// First all ranks show up, then all are waited for: one thread can bring up ranks that wait for each other.
ncclResult_t bringUp(const std::vector<std::shared_ptr<Communicator>>& communicators) {
  ncclResult_t first = ncclSuccess;
  std::vector<bool> isAttached;
  for (auto& communicator : communicators) {
    const ncclResult_t result = communicator->attach();
    isAttached.push_back(result == ncclSuccess);
    if (first == ncclSuccess) first = result;
  }
  for (size_t index = 0; index < communicators.size(); ++index) {
    if (!isAttached[index] || first != ncclSuccess) {
      communicators[index]->setState(Communicator::State::failed);
      continue;
    }
    first = communicators[index]->finishInitialisation();
  }
  return first;
}

ncclResult_t initialise(std::vector<PendingInitialisation>& pending) {
  std::vector<std::shared_ptr<Communicator>> blocking, nonBlocking;
  for (auto& each : pending) (each.communicator->isBlocking ? blocking : nonBlocking).push_back(each.communicator);
  if (!nonBlocking.empty()) {
    std::thread([nonBlocking] { bringUp(nonBlocking); }).detach();
  }
  const ncclResult_t result = blocking.empty() ? ncclSuccess : bringUp(blocking);
  if (result != ncclSuccess) {
    for (auto& each : pending) {
      if (!each.communicator->isBlocking) continue;
      *each.result = nullptr;
      each.communicator->end(true);
    }
    return result;
  }
  return nonBlocking.empty() ? ncclSuccess : ncclInProgress;
}

ncclResult_t enqueue(const std::vector<PendingTask>& pending) {
  std::vector<bool> isTaken(pending.size());
  for (size_t first = 0; first < pending.size(); ++first) {
    if (isTaken[first]) continue;
    std::vector<Task> tasks;
    for (size_t index = first; index < pending.size(); ++index) {
      if (pending[index].communicator != pending[first].communicator || pending[index].stream != pending[first].stream) continue;
      isTaken[index] = true;
      tasks.push_back(pending[index].task);
    }
    if (const ncclResult_t result = pending[first].communicator->enqueue(std::move(tasks), pending[first].stream)) return result;
  }
  return ncclSuccess;
}

}  // namespace

ncclResult_t noteError(ncclResult_t result) {
  Group& own = group();
  if (own.depth > 0 && own.error == ncclSuccess && result != ncclInProgress) own.error = result;
  return result;
}

ncclResult_t submitTask(const std::shared_ptr<Communicator>& communicator, const Task& task, CUstream stream) {
  Group& own = group();
  if (own.depth == 0) {
    if (task.isPointToPoint() && task.root == communicator->endpoint.rank) {
      return problem(ncclInvalidUsage, "%s to or from the rank itself needs a group with the other half", nameOf(task.kind));
    }
    return communicator->enqueue({task}, stream);
  }
  own.tasks.push_back({communicator, stream, task});
  return ncclSuccess;
}

ncclResult_t submitInitialisation(const std::shared_ptr<Communicator>& communicator, ncclComm_t* result) {
  *result = communicator->handle();
  std::vector<PendingInitialisation> now = {{communicator, result}};
  Group& own = group();
  if (own.depth == 0) return initialise(now);
  own.initialisations.push_back(now[0]);
  return ncclSuccess;
}

}  // namespace shoal::nccl

using namespace shoal::nccl;

ncclResult_t ncclGroupStart(void) {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  return guarded([]() -> ncclResult_t {
    Group& own = group();
    if (own.depth == 0) return problem(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
    if (--own.depth > 0) return ncclSuccess;
    Group ended = std::move(own);
    own = Group();
    if (ended.error != ncclSuccess) {
      for (auto& each : ended.initialisations) {
        *each.result = nullptr;
        each.communicator->end(true);
      }
      return ended.error;
    }
    ncclResult_t result = ncclSuccess;
    if (!ended.initialisations.empty()) result = initialise(ended.initialisations);
    if (result != ncclSuccess && result != ncclInProgress) return result;
    if (const ncclResult_t queued = enqueue(ended.tasks)) return queued;
    return result;
  });
}

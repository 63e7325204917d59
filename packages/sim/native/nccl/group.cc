#include "group.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
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

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<PendingTask> tasks;
  std::vector<Job> jobs;
};

Group& group() {
  thread_local Group own;
  return own;
}

ncclResult_t endJob(const Job& job, ncclResult_t result, bool callerKnows) {
  for (auto& communicator : job.communicators) communicator->settle(result);
  if (result != ncclSuccess && callerKnows && job.undo) job.undo();
  return result;
}

ncclResult_t runJob(const Job& job) {
  return endJob(job, guarded(job.run), job.communicators.front()->config.isBlocking);
}

// Threads that wait at the gate start together or not at all.
class Gate {
 public:
  // Returns false if the jobs were cancelled.
  bool wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ != State::closed; });
    return state_ == State::open;
  }
  void set(bool isOpen) {
    std::lock_guard lock(mutex_);
    state_ = isOpen ? State::open : State::cancelled;
    changed_.notify_all();
  }

 private:
  enum class State { closed, open, cancelled };
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::closed;
};

// Runs the jobs of one communicator in call order, because its ranks synchronize in each job.
ncclResult_t runInOrder(const std::vector<Job>& jobs) {
  ncclResult_t first = ncclSuccess;
  for (const Job& job : jobs) {
    const ncclResult_t result = runJob(job);
    if (first == ncclSuccess) first = result;
  }
  return first;
}

// Runs the jobs of all communicators. Returns after the jobs of blocking communicators have completed.
ncclResult_t runJobs(std::vector<Job> jobs) {
  std::vector<std::vector<Job>> blocking, others;
  for (Job& job : jobs) {
    for (auto& communicator : job.communicators) communicator->begin();
    auto& lists = job.communicators.front()->config.isBlocking ? blocking : others;
    auto same = std::find_if(lists.begin(), lists.end(), [&](auto& list) {
      return list.front().communicators.front() == job.communicators.front();
    });
    if (same == lists.end()) same = lists.insert(lists.end(), std::vector<Job>());
    same->push_back(std::move(job));
  }
  std::vector<ncclResult_t> results(blocking.size(), ncclSuccess);
  std::vector<std::thread> threads;
  const auto gate = std::make_shared<Gate>();
  try {
    for (auto& list : others) {
      threads.emplace_back([gate, list] {
        if (gate->wait()) runInOrder(list);
      });
    }
    for (size_t index = 1; index < blocking.size(); ++index) {
      threads.emplace_back([&, index, gate] {
        if (gate->wait()) results[index] = runInOrder(blocking[index]);
      });
    }
  } catch (const std::exception& error) {
    // Started ranks would wait for ranks that were not started.
    gate->set(false);
    for (auto& thread : threads) thread.join();
    const ncclResult_t result = problem(ncclSystemError, "no thread for a communicator: %s", error.what());
    for (auto* lists : {&blocking, &others}) {
      for (auto& list : *lists) {
        for (const Job& job : list) endJob(job, result, true);
      }
    }
    return result;
  }
  gate->set(true);
  for (size_t index = 0; index < others.size(); ++index) threads[index].detach();
  if (!blocking.empty()) results[0] = runInOrder(blocking[0]);
  for (size_t index = others.size(); index < threads.size(); ++index) threads[index].join();
  for (const ncclResult_t result : results) {
    if (result != ncclSuccess) return result;
  }
  return others.empty() ? ncclSuccess : ncclInProgress;
}

void giveUp(std::vector<Job>& jobs) {
  for (Job& job : jobs) {
    for (auto& communicator : job.communicators) communicator->forgo();
    if (job.undo) job.undo();
  }
}

ncclResult_t enqueue(const std::vector<PendingTask>& pending) {
  std::vector<bool> isTaken(pending.size());
  ncclResult_t all = ncclSuccess;
  for (size_t first = 0; first < pending.size(); ++first) {
    if (isTaken[first]) continue;
    std::vector<Task> tasks;
    for (size_t index = first; index < pending.size(); ++index) {
      if (pending[index].communicator != pending[first].communicator || pending[index].stream != pending[first].stream)
        continue;
      isTaken[index] = true;
      tasks.push_back(pending[index].task);
    }
    const ncclResult_t result = pending[first].communicator->enqueue(std::move(tasks), pending[first].stream);
    if (result != ncclSuccess && result != ncclInProgress) {
      // Ranks of this group with queued work would wait for ranks without it.
      for (size_t index = 0; first != 0 && index < pending.size(); ++index) {
        if (!isTaken[index] || pending[index].communicator == pending[first].communicator)
          pending[index].communicator->breakOff(result);
      }
      return result;
    }
    if (result == ncclInProgress) all = result;
  }
  return all;
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
    if (task.isPointToPoint() && task.root == communicator->rank()) {
      return problem(ncclInvalidUsage, "%s to or from the rank itself needs a group with the other half",
                     nameOf(task.kind));
    }
    return communicator->enqueue({task}, stream);
  }
  own.tasks.push_back({communicator, stream, task});
  return ncclSuccess;
}

ncclResult_t submitJob(Job job) {
  const bool saysSuccess = job.saysSuccess;
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  Group& own = group();
  if (own.depth == 0) {
    const ncclResult_t result = runJobs(std::move(jobs));
    return result == ncclInProgress && saysSuccess ? ncclSuccess : result;
  }
  own.jobs.push_back(std::move(jobs[0]));
  return ncclSuccess;
}

}  // namespace shoal::nccl

using namespace shoal::nccl;

ncclResult_t ncclGroupStart(void) {
  ++group().depth;
  return ncclSuccess;
}

namespace {

// In microseconds: a fixed start-up time plus a time per byte. The speed is not that of a particular machine.
float estimate(const std::vector<PendingTask>& pending) {
  constexpr double start = 10, bytesAMicrosecond = 10000;
  double time = 0;
  for (const PendingTask& each : pending) {
    const Communicator& communicator = *each.communicator;
    const size_t sent = sendElements(each.task, communicator.ranks(), communicator.rank());
    const size_t received = recvElements(each.task, communicator.ranks(), communicator.rank());
    time += start + static_cast<double>(std::max(sent, received) * bytesOf(each.task.type)) / bytesAMicrosecond;
  }
  return static_cast<float>(time);
}

ncclResult_t endGroup(const char* function, bool isSimulated, ncclSimInfo_t* info) {
  Group& own = group();
  if (own.depth == 0) return problem(ncclInvalidUsage, "%s: not in a group call", function);
  if (--own.depth > 0) return ncclSuccess;
  Group ended = std::move(own);
  own = Group();
  if (ended.error == ncclSuccess && info != nullptr &&
      (info->magic != NCCL_SIM_INFO_MAGIC || info->size < sizeof *info)) {
    ended.error = problem(ncclInvalidArgument, "%s: simInfo was not initialized", function);
  }
  if (ended.error != ncclSuccess) {
    giveUp(ended.jobs);
    return ended.error;
  }
  const ncclResult_t made = ended.jobs.empty() ? ncclSuccess : runJobs(std::move(ended.jobs));
  if (made != ncclSuccess && made != ncclInProgress) return made;
  if (isSimulated) {
    if (info != nullptr && !ended.tasks.empty()) info->estimatedTime = estimate(ended.tasks);
    return made;
  }
  const ncclResult_t queued = enqueue(ended.tasks);
  return queued == ncclSuccess ? made : queued;
}

}  // namespace

ncclResult_t ncclGroupEnd(void) {
  return guarded([] { return endGroup("ncclGroupEnd", false, nullptr); });
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return guarded([&] { return endGroup("ncclGroupSimulateEnd", true, simInfo); });
}

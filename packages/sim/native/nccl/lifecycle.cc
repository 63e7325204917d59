// Revoking, suspending and resuming a communicator, and its memory use.
#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "problem.h"

using namespace shoal::nccl;

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommRevoke";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findSettled(comm, function, communicator)) return noteError(result);
    if (revokeFlags != NCCL_REVOKE_DEFAULT)
      return noteError(problem(ncclInvalidArgument, "%s: flags are %d, not 0", function, revokeFlags));
    const auto state = communicator->state();
    if (state == Communicator::State::revoked)
      return noteError(problem(ncclInvalidArgument, "%s: it has been revoked already", function));
    if (state == Communicator::State::finalised || state == Communicator::State::failed) {
      return noteError(
          problem(ncclInvalidUsage, "%s: the communicator has been finalized, or never came up", function));
    }
    Job job;
    job.communicators = {communicator};
    job.run = [communicator] {
      communicator->revoke();
      return ncclSuccess;
    };
    return noteError(submitJob(std::move(job)));
  });
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommSuspend";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findReady(comm, function, communicator)) return noteError(result);
    if (flags != NCCL_SUSPEND_MEM)
      return noteError(problem(ncclInvalidArgument, "%s: flags are %d, not NCCL_SUSPEND_MEM", function, flags));
    Job job;
    job.communicators = {communicator};
    job.run = [communicator] { return communicator->suspend(); };
    return noteError(submitJob(std::move(job)));
  });
}

ncclResult_t ncclCommResume(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommResume";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findSound(comm, function, communicator)) return noteError(result);
    if (!communicator->isSuspended())
      return noteError(problem(ncclInvalidUsage, "%s: the communicator is not suspended", function));
    Job job;
    job.communicators = {communicator};
    job.run = [communicator] { return communicator->resume(); };
    return noteError(submitJob(std::move(job)));
  });
}

ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommMemStats";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findSound(comm, function, communicator)) return result;
    if (value == nullptr) return problem(ncclInvalidArgument, "%s: value is NULL", function);
    const Endpoint& endpoint = communicator->endpoint();
    const uint64_t suspendable = endpoint.isDirect ? 0 : endpoint.segment->stagingShare();
    const uint64_t persistent =
        (endpoint.isDirect ? 0 : endpoint.segment->otherShare()) + communicator->deviceMemoryBytes();
    switch (stat) {
      case ncclStatGpuMemSuspend: *value = suspendable; return ncclSuccess;
      case ncclStatGpuMemSuspended: *value = communicator->isSuspended(); return ncclSuccess;
      case ncclStatGpuMemPersist: *value = persistent; return ncclSuccess;
      case ncclStatGpuMemTotal: *value = suspendable + persistent; return ncclSuccess;
    }
    return problem(ncclInvalidArgument, "%s: %d is not a statistic", function, stat);
  });
}

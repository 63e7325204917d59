// The host side of the device API: properties, teams, requirements, and device communicators.
#include <algorithm>
#include <cstring>
#include <vector>

#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "multicast.h"
#include "problem.h"
#include "window.h"

using namespace shoal::nccl;

namespace {

constexpr size_t kHandleBytes = 128;  // resource handles count in units of this size

uint32_t reciprocal(int divisor) { return static_cast<uint32_t>((uint64_t{1} << 32) / static_cast<uint64_t>(divisor)); }

ncclTeam_t worldOf(const Communicator& communicator) { return {communicator.ranks(), communicator.rank(), 1}; }

template <class Make>
ncclTeam_t team(const char* function, ncclComm_t comm, Make&& make) {
  ncclTeam_t made = {};
  guarded([&] {
    std::shared_ptr<Communicator> communicator;
    const ncclResult_t result = Communicator::findSound(comm, function, communicator);
    if (result == ncclSuccess) made = make(*communicator);
    return result;
  });
  return made;
}

int rankToWorld(const char* function, ncclComm_t comm, ncclTeam_t team, int rank) {
  int found = -1;
  guarded([&] {
    std::shared_ptr<Communicator> communicator;
    const ncclResult_t result = Communicator::findSound(comm, function, communicator);
    if (result == ncclSuccess) found = communicator->rank() + (rank - team.rank) * team.stride;
    return result;
  });
  return found;
}

size_t lsaBarrierBytes(int ranks, int barriers) {
  return (3 * static_cast<size_t>(barriers) + static_cast<size_t>(barriers) * static_cast<size_t>(ranks)) *
         sizeof(uint32_t);
}

size_t exchangeBytes(int blocks, int slots) {
  return static_cast<size_t>(blocks) * (1 + 2 * static_cast<size_t>(slots)) * 16;
}

ncclResult_t checkRequirement(const char* function, bool isGood, const void* handle,
                              ncclDevResourceRequirements_t* requirement) {
  if (!isGood) return problem(ncclInvalidArgument, "%s: a count is negative", function);
  if (handle == nullptr || requirement == nullptr)
    return problem(ncclInvalidArgument, "%s: outHandle or outReq is NULL", function);
  *requirement = {};
  return ncclSuccess;
}

// The layout of a device communicator's memory, which all ranks can address.
struct Layout {
  size_t bytes = 0;
  uint32_t signals = 0, counters = 0;

  ncclDevResourceHandle_t take(size_t size, size_t align) {
    const size_t step = std::max<size_t>(align, kHandleBytes);
    bytes = (bytes + step - 1) / step * step;
    const auto handle = static_cast<ncclDevResourceHandle_t>(bytes / kHandleBytes);
    bytes += size;
    return handle;
  }
};

// A copy, because the job reads it when the caller's lists may be freed. The objects they point to must stay valid,
// because the job writes to them.
struct Required {
  ncclDevCommRequirements_t all = {};
  std::vector<ncclDevResourceRequirements_t> resources;
  bool wantsMultimem = false;
  std::vector<ncclMultimemHandle_t*> multimems;
};

ncclResult_t checkRequirements(const Communicator& communicator, const ncclDevCommRequirements_t* given,
                               Required& copy) {
  ncclDevCommRequirements_t& required = copy.all;
  constexpr char function[] = "ncclDevCommCreate";
  if (given == nullptr) return problem(ncclInvalidArgument, "%s: the requirements are NULL", function);
  if (given->magic != NCCL_API_MAGIC) {
    return problem(ncclInvalidUsage, "%s: the requirements were not initialized", function);
  }
  if (given->version < 23000 || given->size != sizeof required) {
    return problem(ncclInvalidArgument,
                   "%s: the requirements are those of version %u with %zu bytes, this is %d with %zu", function,
                   given->version, given->size, NCCL_VERSION_CODE, sizeof required);
  }
  required = *given;
  for (const int count : {required.barrierCount, required.lsaBarrierCount, required.railGinBarrierCount,
                          required.lsaLLA2ABlockCount, required.lsaLLA2ASlotCount, required.ginContextCount,
                          required.ginSignalCount, required.ginCounterCount, required.worldGinBarrierCount}) {
    if (count < 0) return problem(ncclInvalidArgument, "%s: a count is %d", function, count);
  }
  if (required.ginForceEnable || required.ginConnectionType != NCCL_GIN_CONNECTION_NONE) {
    return problem(ncclInvalidUsage, "%s: the software device has no network that GPUs use themselves (GIN)", function);
  }
  for (const auto* each = required.resourceRequirementsList; each != nullptr; each = each->next) {
    const bool isPower = each->bufferAlign == 0 || (each->bufferAlign & (each->bufferAlign - 1)) == 0;
    if (!isPower || each->bufferSize > size_t{1} << 38 || each->ginSignalCount < 0 || each->ginCounterCount < 0) {
      return problem(ncclInvalidArgument, "%s: a resource of %zu bytes, aligned to %zu", function, each->bufferSize,
                     each->bufferAlign);
    }
    copy.resources.push_back(*each);
  }
  copy.wantsMultimem = required.lsaMultimem;
  for (const auto* each = required.teamRequirementsList; each != nullptr; each = each->next) {
    if (!each->multimem) continue;
    if (each->team.nRanks != communicator.ranks() || each->team.rank != communicator.rank()) {
      return problem(ncclInvalidUsage, "%s: the software device has multicast memory only for all ranks", function);
    }
    copy.wantsMultimem = true;
    if (each->outMultimemHandle != nullptr) copy.multimems.push_back(each->outMultimemHandle);
  }
  if (copy.wantsMultimem && !Multicast::isSupported(communicator)) {
    return problem(ncclInvalidUsage, "%s: there is no multicast memory for one rank alone, nor with NCCL_NVLS_ENABLE=0",
                   function);
  }
  return ncclSuccess;
}

ncclResult_t create(Communicator& communicator, const Required& copy, ncclDevComm_t* out) {
  const ncclDevCommRequirements_t& required = copy.all;
  constexpr char function[] = "ncclDevCommCreate";
  const int ranks = communicator.ranks();
  ncclDevComm_t made = {};
  made.magic = NCCL_API_MAGIC;
  made.version = NCCL_VERSION_CODE;
  made.rank = made.lsaRank = communicator.rank();
  made.nRanks = made.lsaSize = ranks;
  made.nRanks_rcp32 = made.lsaSize_rcp32 = reciprocal(ranks);
  Layout layout;
  made.lsaBarrier = {layout.take(lsaBarrierBytes(ranks, required.lsaBarrierCount), 4), required.lsaBarrierCount};
  made.hybridLsaBarrier = {layout.take(lsaBarrierBytes(ranks, required.barrierCount), 4), required.barrierCount};
  layout.take(exchangeBytes(required.lsaLLA2ABlockCount, required.lsaLLA2ASlotCount), 16);
  layout.signals = static_cast<uint32_t>(required.ginSignalCount);
  layout.counters = static_cast<uint32_t>(required.ginCounterCount);
  struct Assigned {
    const ncclDevResourceRequirements_t* to;
    ncclDevResourceHandle_t handle;
    uint32_t signal, counter;
  };
  std::vector<Assigned> assigned;
  for (const auto& each : copy.resources) {
    assigned.push_back({&each, layout.take(each.bufferSize, each.bufferAlign), layout.signals, layout.counters});
    layout.signals += static_cast<uint32_t>(each.ginSignalCount);
    layout.counters += static_cast<uint32_t>(each.ginCounterCount);
  }
  ScopedContext scope(communicator.context);
  if (scope.status != CUDA_SUCCESS) return cudaProblem(scope.status, "making the communicator's context current");
  void* memory = nullptr;
  const size_t bytes = std::max<size_t>(layout.bytes, kHandleBytes);
  ncclResult_t result = ncclMemAlloc(&memory, bytes);
  if (result == ncclSuccess) {
    const CUresult cleared = cuMemsetD8_v2(reinterpret_cast<CUdeviceptr>(memory), 0, bytes);
    if (cleared != CUDA_SUCCESS) result = cudaProblem(cleared, "cuMemsetD8");
  }
  // Every rank must have the same requirements, or the layouts would differ.
  std::shared_ptr<Window> window;
  result = Window::make(communicator, function, memory, bytes, NCCL_WIN_COLL_SYMMETRIC, window, result);
  // Either all ranks have a multicast address or none has.
  if (result == ncclSuccess && copy.wantsMultimem && window->multicast() == nullptr) {
    window->withdraw();
    window.reset();
    result = problem(ncclSystemError, "%s: the multicast memory cannot be made", function);
  }
  if (result != ncclSuccess) {
    ncclMemFree(memory);
    return result;
  }
  communicator.addDeviceMemory(window, memory);
  made.resourceWindow = window->handle();
  // These values place a rank's own memory where a kernel computes it to be.
  made.resourceWindow_inlined.stride4G = 1;
  made.resourceWindow_inlined.lsaFlatBase =
      reinterpret_cast<char*>(reinterpret_cast<uint64_t>(memory) - (static_cast<uint64_t>(made.lsaRank) << 32));
  made.ginSignalCount = static_cast<int>(layout.signals);
  made.ginCounterCount = static_cast<int>(layout.counters);
  if (copy.wantsMultimem) made.lsaMultimem.mcBasePtr = window->multicast();
  const bool isHandedOut = communicator.handOut([&] {
    for (const Assigned& each : assigned) {
      if (each.to->outBufferHandle != nullptr) *each.to->outBufferHandle = each.handle;
      if (each.to->outGinSignalStart != nullptr) *each.to->outGinSignalStart = each.signal;
      if (each.to->outGinCounterStart != nullptr) *each.to->outGinCounterStart = each.counter;
    }
    for (ncclMultimemHandle_t* each : copy.multimems) *each = made.lsaMultimem;
    *out = made;
  });
  return isHandedOut ? ncclSuccess : ncclInternalError;
}

}  // namespace

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* props) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclCommQueryProperties";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findSound(comm, function, communicator)) return result;
    if (props == nullptr) return problem(ncclInvalidArgument, "%s: props is NULL", function);
    if (props->magic != NCCL_API_MAGIC || props->size < offsetof(ncclCommProperties_t, rank)) {
      return problem(ncclInvalidUsage, "%s: props was not initialized", function);
    }
    ncclCommProperties_t known = *props;
    known.rank = communicator->rank();
    known.nRanks = communicator->ranks();
    known.cudaDev = known.nvmlDev = communicator->device;
    known.deviceApiSupport = true;
    known.multimemSupport = Multicast::isSupported(*communicator);
    known.ginType = known.railedGinType = NCCL_GIN_TYPE_NONE;
    known.nLsaTeams = 1;
    known.hostRmaSupport = true;
    memcpy(props, &known, std::min(props->size, sizeof known));
    return ncclSuccess;
  });
}

ncclTeam_t ncclTeamWorld(ncclComm_t comm) { return team("ncclTeamWorld", comm, worldOf); }
// All ranks are on one machine and can address each other's memory.
ncclTeam_t ncclTeamLsa(ncclComm_t comm) { return team("ncclTeamLsa", comm, worldOf); }
ncclTeam_t ncclTeamRail(ncclComm_t comm) {
  return team("ncclTeamRail", comm,
              [](const Communicator& communicator) { return ncclTeam_t{1, 0, communicator.ranks()}; });
}
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  return rankToWorld("ncclTeamRankToWorld", comm, team, rank);
}
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) {
  return rankToWorld("ncclTeamRankToLsa", comm, team, rank);
}

// Elements are sent in words of eight bytes.
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize) { return maxElts * ((maxEltSize + 7) / 8); }

ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle,
                                        ncclDevResourceRequirements_t* outReq) {
  if (const ncclResult_t result =
          checkRequirement("ncclLLA2ACreateRequirement", nBlocks >= 0 && nSlots >= 0, outHandle, outReq))
    return result;
  outHandle->nSlots = static_cast<uint32_t>(nSlots);
  outReq->bufferSize = exchangeBytes(nBlocks, nSlots);
  outReq->bufferAlign = 16;
  outReq->outBufferHandle = &outHandle->bufHandle;
  return ncclSuccess;
}

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t* outHandle,
                                             ncclDevResourceRequirements_t* outReq) {
  const bool isGood = nBarriers >= 0 && team.nRanks >= 0;
  if (const ncclResult_t result = checkRequirement("ncclLsaBarrierCreateRequirement", isGood, outHandle, outReq))
    return result;
  outHandle->nBarriers = nBarriers;
  outReq->bufferSize = lsaBarrierBytes(team.nRanks, nBarriers);
  outReq->bufferAlign = 4;
  outReq->outBufferHandle = &outHandle->bufHandle;
  return ncclSuccess;
}

ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t* outHandle, ncclDevResourceRequirements_t* outReq) {
  const bool isGood = nBarriers >= 0 && team.nRanks >= 0;
  if (const ncclResult_t result = checkRequirement("ncclGinBarrierCreateRequirement", isGood, outHandle, outReq))
    return result;
  outReq->ginSignalCount = nBarriers * team.nRanks;
  outReq->outGinSignalStart = &outHandle->signal0;
  return ncclSuccess;
}

ncclResult_t ncclGinOutboxCreateRequirement(int nBlocks, int size_log2, ncclGinOutboxHandle_t* outHandle,
                                            ncclDevResourceRequirements_t* outReq) {
  const bool isGood = nBlocks >= 0 && size_log2 >= 0 && size_log2 < 32;
  if (const ncclResult_t result = checkRequirement("ncclGinOutboxCreateRequirement", isGood, outHandle, outReq))
    return result;
  outHandle->size_log2 = static_cast<uint32_t>(std::max(size_log2, 7));
  outReq->bufferSize = static_cast<size_t>(nBlocks) * (8192 + kHandleBytes + (size_t{1} << outHandle->size_log2));
  outReq->bufferAlign = kHandleBytes;
  outReq->outBufferHandle = &outHandle->bufHandle;
  return ncclSuccess;
}

ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nBlocks, int size_log2,
                                              ncclGinInboxA2AHandle_t* outHandle,
                                              ncclDevResourceRequirements_t* outReq) {
  constexpr char function[] = "ncclGinInboxA2ACreateRequirement";
  const bool isGood = nBlocks >= 0 && size_log2 >= 0 && size_log2 < 32;
  if (const ncclResult_t result = checkRequirement(function, isGood, outHandle, outReq)) return result;
  if (peers.nRanks < 2) return problem(ncclInvalidArgument, "%s: a team of %d has no peers", function, peers.nRanks);
  const int others = peers.nRanks - 1;
  outHandle->size_log2 = static_cast<uint32_t>(size_log2);
  outHandle->nPeers_rcp32 = reciprocal(others);
  outReq->bufferSize = static_cast<size_t>(nBlocks) * (kHandleBytes + std::max(kHandleBytes, size_t{1} << size_log2));
  outReq->bufferAlign = kHandleBytes;
  outReq->outBufferHandle = &outHandle->bufHandle;
  outReq->ginSignalCount = nBlocks * (2048 + 4 * others);
  outReq->outGinSignalStart = &outHandle->signals;
  return ncclSuccess;
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclDevCommCreate";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findReady(comm, function, communicator)) return noteError(result);
    Required required;
    if (const ncclResult_t result = checkRequirements(*communicator, reqs, required)) return noteError(result);
    if (outDevComm == nullptr) return noteError(problem(ncclInvalidArgument, "%s: outDevComm is NULL", function));
    Job job;
    job.communicators = {communicator};
    job.saysSuccess = true;
    job.run = [communicator, required, outDevComm] { return create(*communicator, required, outDevComm); };
    return noteError(submitJob(std::move(job)));
  });
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t* devComm) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclDevCommDestroy";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findSettled(comm, function, communicator)) return result;
    if (devComm == nullptr || !communicator->removeDeviceMemory(devComm->resourceWindow)) {
      return problem(ncclInvalidArgument, "%s: devComm is NULL, or none of this communicator", function);
    }
    return ncclSuccess;
  });
}

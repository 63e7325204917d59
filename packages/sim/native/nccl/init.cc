// Creation and end of communicators, and what they answer about themselves.
#include <cstddef>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "identifier.h"
#include "problem.h"
#include "segment.h"

using namespace shoal::nccl;

namespace {

// The device a rank works on: that of the current context, else device 0 and its primary context.
struct Place {
  CUcontext context = nullptr;
  int device = 0;
  bool holdsPrimaryContext = false;
};

ncclResult_t findPlace(Place& place) {
  CUresult status = cuInit(0);
  if (status != CUDA_SUCCESS) return cudaProblem(status, "cuInit");
  status = cuCtxGetCurrent(&place.context);
  if (status != CUDA_SUCCESS) return cudaProblem(status, "cuCtxGetCurrent");
  if (place.context != nullptr) {
    status = cuCtxGetDevice(&place.device);
    return status == CUDA_SUCCESS ? ncclSuccess : cudaProblem(status, "cuCtxGetDevice");
  }
  status = cuDevicePrimaryCtxRetain(&place.context, 0);
  place.holdsPrimaryContext = status == CUDA_SUCCESS;
  return status == CUDA_SUCCESS ? ncclSuccess : cudaProblem(status, "cuDevicePrimaryCtxRetain");
}

// A member of the configuration that was set must be in its range; a shorter structure of an older version has not got it.
ncclResult_t checkMember(const char* name, int value, int least, int most) {
  if (value == NCCL_CONFIG_UNDEF_INT || (value >= least && value <= most)) return ncclSuccess;
  return problem(ncclInvalidArgument, "ncclConfig_t: %s is %d, it must be from %d to %d", name, value, least, most);
}

ncclResult_t readConfig(const ncclConfig_t* given, bool& isBlocking) {
  isBlocking = true;
  if (given == nullptr) return ncclSuccess;
  if (given->magic != NCCL_API_MAGIC) {
    return problem(ncclInvalidArgument, "ncclConfig_t: magic is 0x%x, not 0x%x: the structure was not initialized", given->magic, NCCL_API_MAGIC);
  }
  constexpr size_t least = offsetof(ncclConfig_t, cgaClusterSize);
  if (given->size < least || given->size > 4096) {
    return problem(ncclInvalidArgument, "ncclConfig_t: size is %zu, which no version of NCCL has", given->size);
  }
  if (given->version < 21400) return problem(ncclInvalidArgument, "ncclConfig_t: version is %u, the oldest that has it is 21400", given->version);
  ncclConfig_t config;
  memset(&config, 0, sizeof config);
  config.cgaClusterSize = config.minCTAs = config.maxCTAs = config.splitShare = NCCL_CONFIG_UNDEF_INT;
  memcpy(&config, given, given->size < sizeof config ? given->size : sizeof config);
  if (const ncclResult_t result = checkMember("blocking", config.blocking, 0, 1)) return result;
  if (const ncclResult_t result = checkMember("cgaClusterSize", config.cgaClusterSize, 0, 8)) return result;
  if (const ncclResult_t result = checkMember("minCTAs", config.minCTAs, 1, 64)) return result;
  if (const ncclResult_t result = checkMember("maxCTAs", config.maxCTAs, 1, 64)) return result;
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.minCTAs > config.maxCTAs) {
    return problem(ncclInvalidArgument, "ncclConfig_t: minCTAs is %d and maxCTAs only %d", config.minCTAs, config.maxCTAs);
  }
  if (const ncclResult_t result = checkMember("splitShare", config.splitShare, 0, 1)) return result;
  isBlocking = config.blocking != 0;
  return ncclSuccess;
}

ncclResult_t initRank(const char* function, ncclComm_t* comm, int nranks, const ncclUniqueId& id, int rank, const ncclConfig_t* config) {
  return guarded([&]() -> ncclResult_t {
    if (comm == nullptr) return noteError(problem(ncclInvalidArgument, "%s: comm is NULL", function));
    if (nranks < 1 || nranks > kMaxRanks) {
      return noteError(problem(ncclInvalidArgument, "%s: nranks is %d, the software device has 1 to %d ranks", function, nranks, kMaxRanks));
    }
    if (rank < 0 || rank >= nranks) return noteError(problem(ncclInvalidArgument, "%s: rank is %d of %d", function, rank, nranks));
    bool isBlocking = true;
    std::string name, reason;
    if (const ncclResult_t result = readConfig(config, isBlocking)) return noteError(result);
    if (const ncclResult_t result = readIdentifier(id, name)) return noteError(result);
    Place place;
    if (const ncclResult_t result = findPlace(place)) return noteError(result);
    auto segment = Segment::named(name, nranks, reason);
    if (!segment) {
      if (place.holdsPrimaryContext) cuDevicePrimaryCtxRelease_v2(place.device);
      return noteError(problem(ncclSystemError, "%s: %s", function, reason.c_str()));
    }
    return noteError(submitInitialisation(
        Communicator::create(segment, nranks, rank, place.device, place.context, place.holdsPrimaryContext, isBlocking), comm));
  });
}

// Hands one number of a communicator out.
template <class Read>
ncclResult_t read(const char* function, ncclComm_t comm, int* out, Read&& value) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::find(comm, function, communicator)) return result;
    if (out == nullptr) return problem(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    *out = value(*communicator);
    return ncclSuccess;
  });
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return guarded([&] {
    if (uniqueId == nullptr) return problem(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
    return makeIdentifier(*uniqueId);
  });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return initRank("ncclCommInitRank", comm, nranks, commId, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return initRank("ncclCommInitRankConfig", comm, nranks, commId, rank, config);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded([&]() -> ncclResult_t {
    CUresult status = cuInit(0);
    if (status != CUDA_SUCCESS) return noteError(cudaProblem(status, "cuInit"));
    int devices = 0;
    cuDeviceGetCount(&devices);
    if (comm == nullptr) return noteError(problem(ncclInvalidArgument, "ncclCommInitAll: comm is NULL"));
    if (ndev < 1 || ndev > kMaxRanks) return noteError(problem(ncclInvalidArgument, "ncclCommInitAll: ndev is %d", ndev));
    if (devlist == nullptr && ndev > devices) {
      return noteError(problem(ncclUnhandledCudaError, "ncclCommInitAll: ndev is %d, there are %d devices", ndev, devices));
    }
    std::set<int> used;
    for (int rank = 0; devlist != nullptr && rank < ndev; ++rank) {
      if (devlist[rank] < 0 || devlist[rank] >= devices) {
        return noteError(problem(ncclInvalidArgument, "ncclCommInitAll: devlist[%d] is %d, there are %d devices", rank, devlist[rank], devices));
      }
      if (!used.insert(devlist[rank]).second) {
        return noteError(problem(ncclInvalidUsage, "ncclCommInitAll: device %d is in devlist twice", devlist[rank]));
      }
    }
    std::string reason;
    auto segment = Segment::anonymous(ndev, reason);
    if (!segment) return noteError(problem(ncclSystemError, "ncclCommInitAll: %s", reason.c_str()));
    std::vector<std::shared_ptr<Communicator>> made;
    ncclResult_t result = ncclSuccess;
    for (int rank = 0; rank < ndev && result == ncclSuccess; ++rank) {
      const int device = devlist == nullptr ? rank : devlist[rank];
      CUcontext context = nullptr;
      status = cuDevicePrimaryCtxRetain(&context, device);
      if (status != CUDA_SUCCESS) {
        result = cudaProblem(status, "cuDevicePrimaryCtxRetain");
        break;
      }
      made.push_back(Communicator::create(segment, ndev, rank, device, context, true, true));
      result = made.back()->attach();
    }
    for (auto& communicator : made) {
      if (result == ncclSuccess) result = communicator->finishInitialisation();
    }
    for (auto& communicator : made) {
      if (result != ncclSuccess) communicator->end(true);
      else comm[communicator->endpoint.rank] = communicator->handle();
    }
    return noteError(result);
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (comm == nullptr) return ncclSuccess;
    if (const ncclResult_t result = Communicator::findReady(comm, "ncclCommFinalize", communicator)) return result;
    if (communicator->isBlocking) return communicator->finalise();
    communicator->setState(Communicator::State::initialising);  // reads as in progress until done
    std::thread([communicator] { communicator->finalise(); }).detach();
    return ncclInProgress;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (comm == nullptr) return ncclSuccess;
    if (const ncclResult_t result = Communicator::find(comm, "ncclCommDestroy", communicator)) return result;
    communicator->end(false);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (comm == nullptr) return ncclSuccess;
    if (const ncclResult_t result = Communicator::find(comm, "ncclCommAbort", communicator)) return result;
    communicator->end(true);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::find(comm, "ncclCommGetAsyncError", communicator)) return result;
    if (asyncError == nullptr) return problem(ncclInvalidArgument, "ncclCommGetAsyncError: asyncError is NULL");
    *asyncError = communicator->asyncError();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return read("ncclCommCount", comm, count, [](auto& communicator) { return communicator.endpoint.ranks; });
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return read("ncclCommCuDevice", comm, device, [](auto& communicator) { return communicator.device; });
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return read("ncclCommUserRank", comm, rank, [](auto& communicator) { return communicator.endpoint.rank; });
}

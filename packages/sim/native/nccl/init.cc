// Creating and ending communicators, and querying them.
#include <set>
#include <vector>

#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "identifier.h"
#include "init.h"
#include "problem.h"
#include "segment.h"

using namespace shoal::nccl;

namespace shoal::nccl {

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

// The child retains the primary context itself, because the parent may release it first.
Place placeOf(const Communicator& parent) {
  Place place = {parent.context, parent.device, false};
  CUcontext primary = nullptr;
  if (cuDevicePrimaryCtxRetain(&primary, parent.device) != CUDA_SUCCESS) return place;
  place.holdsPrimaryContext = primary == parent.context;
  if (!place.holdsPrimaryContext) cuDevicePrimaryCtxRelease_v2(parent.device);
  return place;
}

ncclResult_t connectRanks(Communicator& communicator, const char* function, const Identifier& identifier,
                          std::shared_ptr<Endpoint> origin, std::vector<int> ranksThere, int ranks, int rank,
                          int identifiers) {
  std::string reason;
  auto rendezvous = Rendezvous::at(identifier.rendezvous, reason);
  auto segment = rendezvous == nullptr ? nullptr : Segment::join(std::move(rendezvous), identifier.key, ranks, reason);
  if (!segment) return problem(ncclRemoteError, "%s: %s", function, reason.c_str());
  auto endpoint = std::make_shared<Endpoint>(std::move(segment), ranks, rank);
  const bool isNew = origin == nullptr;
  if (!isNew) endpoint->setOrigin(std::move(origin), std::move(ranksThere));
  return communicator.join(std::move(endpoint), isNew ? function : nullptr, identifiers);
}

}  // namespace shoal::nccl

namespace {

ncclResult_t initRank(const char* function, ncclComm_t* comm, int nranks, const ncclUniqueId* ids, int idCount,
                      int rank, const ncclConfig_t* given) {
  return guarded([&]() -> ncclResult_t {
    if (comm == nullptr) return noteError(problem(ncclInvalidArgument, "%s: comm is NULL", function));
    if (nranks < 1 || nranks > kMaxRanks) {
      return noteError(problem(ncclInvalidArgument, "%s: nranks is %d, the software device has 1 to %d ranks", function,
                               nranks, kMaxRanks));
    }
    if (rank < 0 || rank >= nranks)
      return noteError(problem(ncclInvalidArgument, "%s: rank is %d of %d", function, rank, nranks));
    if (ids == nullptr || idCount < 1 || idCount > nranks) {
      return noteError(
          problem(ncclInvalidArgument, "%s: nId is %d, it must be from 1 to the number of ranks", function, idCount));
    }
    Config config;
    if (const ncclResult_t result = readConfig(given, config)) return noteError(result);
    // The ranks connect under the first id. The other ids must be valid, too.
    Identifier identifier;
    for (int index = idCount - 1; index >= 0; --index) {
      if (const ncclResult_t result = readIdentifier(ids[index], identifier)) return noteError(result);
    }
    Place place;
    if (const ncclResult_t result = findPlace(place)) return noteError(result);
    auto communicator = Communicator::create(place, config);
    *comm = communicator->handle();
    Job job;
    job.communicators = {communicator};
    job.run = [=] { return connectRanks(*communicator, function, identifier, nullptr, {}, nranks, rank, idCount); };
    job.undo = [=] {
      *comm = nullptr;
      communicator->end(true);
    };
    return noteError(submitJob(std::move(job)));
  });
}

// Reads one number of a communicator.
template <class Read>
ncclResult_t read(const char* function, ncclComm_t comm, int* out, Read&& value) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findSound(comm, function, communicator)) return result;
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
  return initRank("ncclCommInitRank", comm, nranks, &commId, 1, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return initRank("ncclCommInitRankConfig", comm, nranks, &commId, 1, rank, config);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                      ncclConfig_t* config) {
  return initRank("ncclCommInitRankScalable", newcomm, nranks, commIds, nId, myrank, config);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded([&]() -> ncclResult_t {
    CUresult status = cuInit(0);
    if (status != CUDA_SUCCESS) return noteError(cudaProblem(status, "cuInit"));
    int devices = 0;
    cuDeviceGetCount(&devices);
    if (comm == nullptr) return noteError(problem(ncclInvalidArgument, "ncclCommInitAll: comm is NULL"));
    if (ndev < 1 || ndev > kMaxRanks)
      return noteError(problem(ncclInvalidArgument, "ncclCommInitAll: ndev is %d", ndev));
    if (devlist == nullptr && ndev > devices) {
      return noteError(
          problem(ncclUnhandledCudaError, "ncclCommInitAll: ndev is %d, there are %d devices", ndev, devices));
    }
    std::set<int> used;
    for (int rank = 0; devlist != nullptr && rank < ndev; ++rank) {
      if (devlist[rank] < 0 || devlist[rank] >= devices) {
        return noteError(problem(ncclInvalidArgument, "ncclCommInitAll: devlist[%d] is %d, there are %d devices", rank,
                                 devlist[rank], devices));
      }
      if (!used.insert(devlist[rank]).second) {
        return noteError(problem(ncclInvalidUsage, "ncclCommInitAll: device %d is in devlist twice", devlist[rank]));
      }
    }
    std::string reason;
    auto segment = Segment::anonymous(ndev, reason);
    if (!segment) return noteError(problem(ncclSystemError, "ncclCommInitAll: %s", reason.c_str()));
    std::vector<std::shared_ptr<Communicator>> made;
    std::vector<std::shared_ptr<Endpoint>> endpoints;
    ncclResult_t result = ncclSuccess;
    for (int rank = 0; rank < ndev && result == ncclSuccess; ++rank) {
      Place place;
      place.device = devlist == nullptr ? rank : devlist[rank];
      status = cuDevicePrimaryCtxRetain(&place.context, place.device);
      if (status != CUDA_SUCCESS) {
        result = cudaProblem(status, "cuDevicePrimaryCtxRetain");
        break;
      }
      place.holdsPrimaryContext = true;
      made.push_back(Communicator::create(place, Config()));
      made.back()->begin();
      endpoints.push_back(std::make_shared<Endpoint>(segment, ndev, rank));
    }
    // All ranks are in this thread, so attach all of them before waiting for any.
    for (size_t rank = 0; rank < made.size() && result == ncclSuccess; ++rank)
      result = made[rank]->attach(endpoints[rank], "ncclCommInitAll", 1);
    for (size_t rank = 0; rank < made.size() && result == ncclSuccess; ++rank) result = endpoints[rank]->waitForAll();
    for (auto& communicator : made) {
      communicator->settle(result);
      if (result != ncclSuccess) communicator->end(true);
      else comm[communicator->rank()] = communicator->handle();
    }
    return noteError(result);
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (comm == nullptr) return ncclSuccess;
    if (const ncclResult_t result = Communicator::findSettled(comm, "ncclCommFinalize", communicator))
      return noteError(result);
    if (communicator->state() == Communicator::State::revoked) {
      return noteError(problem(ncclInvalidArgument, "ncclCommFinalize: the communicator has been revoked"));
    }
    if (const ncclResult_t result = Communicator::findReady(comm, "ncclCommFinalize", communicator))
      return noteError(result);
    Job job;
    job.communicators = {communicator};
    job.run = [communicator] { return communicator->finalise(); };
    return noteError(submitJob(std::move(job)));
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (comm == nullptr) return ncclSuccess;
    if (const ncclResult_t result = Communicator::findSettled(comm, "ncclCommDestroy", communicator)) return result;
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
  return read("ncclCommCount", comm, count, [](auto& communicator) { return communicator.ranks(); });
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return read("ncclCommCuDevice", comm, device, [](auto& communicator) { return communicator.device; });
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return read("ncclCommUserRank", comm, rank, [](auto& communicator) { return communicator.rank(); });
}

// NCCL on mapped memory: buffers across several mappings, access rights, and buffers from pools.
#include <algorithm>

#include "mapped.h"
#include "nccl_checks.h"

using check::Primary;
using namespace mapped;

namespace {

struct Pair {
  Pair() {
    OK(cuInit(0));
    NCCL(ncclCommInitAll(comms, 2, nullptr));
  }
  ~Pair() {
    for (auto comm : comms) ncclCommDestroy(comm);
  }
  ncclComm_t comms[2] = {};
};

// Two adjacent mappings, with room for a third.
CUdeviceptr growing(int device) {
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 3 * kPiece, 0, 0, 0));
  grow(range, kPiece, device);
  grow(range + kPiece, kPiece, device);
  return range;
}

void drop(CUdeviceptr range) {
  OK(cuMemUnmap(range, 2 * kPiece));
  OK(cuMemAddressFree(range, 3 * kPiece));
}

}  // namespace

TEST(collectives_work_across_mappings) {
  Primary first(0), second(1);
  Pair pair;
  CUdeviceptr memory[2];
  CUstream streams[2];
  CUcontext contexts[2] = {first.context, second.context};
  constexpr size_t count = 2 * kPiece / 4;
  for (int rank = 0; rank < 2; ++rank) {
    OK(cuCtxSetCurrent(contexts[rank]));
    memory[rank] = growing(rank);
    streams[rank] = check::stream();
    OK(cuMemsetD32_v2(memory[rank], 10u + static_cast<unsigned>(rank), count));
  }
  NCCL(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    auto* at = reinterpret_cast<void*>(memory[rank]);
    NCCL(ncclAllReduce(at, at, count, ncclUint32, ncclSum, pair.comms[rank],
                       reinterpret_cast<cudaStream_t>(streams[rank])));
  }
  NCCL(ncclGroupEnd());
  for (int rank = 0; rank < 2; ++rank) {
    OK(cuCtxSetCurrent(contexts[rank]));
    OK(cuStreamSynchronize(streams[rank]));
    std::vector<unsigned> back(count);
    OK(cuMemcpyDtoH_v2(back.data(), memory[rank], 2 * kPiece));
    CHECK(std::all_of(back.begin(), back.end(), [](unsigned word) { return word == 21; }));
  }
  // Beyond the last mapping.
  auto* at = reinterpret_cast<void*>(memory[0]);
  EQUAL(
      ncclAllReduce(at, at, count + 1, ncclUint32, ncclSum, pair.comms[0], reinterpret_cast<cudaStream_t>(streams[0])),
      ncclInvalidArgument);
  for (int rank = 0; rank < 2; ++rank) {
    OK(cuCtxSetCurrent(contexts[rank]));
    drop(memory[rank]);
  }
}

TEST(collectives_need_the_right_to_their_buffers) {
  Primary primary(0);
  ncclComm_t comm = nullptr;
  const int device = 0;
  NCCL(ncclCommInitAll(&comm, 1, &device));
  const CUdeviceptr memory = growing(0);
  CUstream stream = check::stream();
  auto reduce = [&](CUdeviceptr from, CUdeviceptr to) {
    return ncclAllReduce(reinterpret_cast<void*>(from), reinterpret_cast<void*>(to), 16, ncclFloat32, ncclSum, comm,
                         reinterpret_cast<cudaStream_t>(stream));
  };
  allow(memory, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
  NCCL(reduce(memory, memory + kPiece));
  OK(cuStreamSynchronize(stream));  // a revoked right would make it fail
  EQUAL(reduce(memory + kPiece, memory), ncclUnhandledCudaError);
  allow(memory, kPiece, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EQUAL(reduce(memory, memory + kPiece), ncclUnhandledCudaError);
  OK(cuStreamSynchronize(stream));
  drop(memory);
  NCCL(ncclCommDestroy(comm));
}

TEST(collectives_take_memory_of_pools_but_no_multicast_object) {
  Primary primary(0);
  ncclComm_t comm = nullptr;
  const int device = 0;
  NCCL(ncclCommInitAll(&comm, 1, &device));
  CUstream stream = check::stream();
  CUdeviceptr memory = 0;
  OK(cuMemAllocAsync(&memory, 4096, stream));
  OK(cuMemsetD32Async(memory, 7, 1024, stream));
  auto* at = reinterpret_cast<void*>(memory);
  NCCL(ncclAllReduce(at, at, 1024, ncclUint32, ncclSum, comm, reinterpret_cast<cudaStream_t>(stream)));
  OK(cuStreamSynchronize(stream));
  EQUAL(byteAt(memory + 4092), 7);
  // Multicast memory belongs to no device, so a communicator cannot use it.
  const CUmulticastObjectProp properties = {1, kPiece, 0, 0};
  CUmemGenericAllocationHandle object = 0;
  OK(cuMulticastCreate(&object, &properties));
  OK(cuMulticastAddDevice(object, 0));
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kPiece, 0, 0, 0));
  OK(cuMemMap(range, kPiece, 0, object, 0));
  allow(range, kPiece, 0);
  EQUAL(ncclAllReduce(at, reinterpret_cast<void*>(range), 1024, ncclUint32, ncclSum, comm,
                      reinterpret_cast<cudaStream_t>(stream)),
        ncclInvalidArgument);
  OK(cuMemUnmap(range, kPiece));
  OK(cuMemAddressFree(range, kPiece));
  OK(cuMemRelease(object));
  OK(cuMemFreeAsync(memory, stream));
  NCCL(ncclCommDestroy(comm));
}

// NCCL with all ranks in one process.
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "nccl_ranks.h"

using check::Buffer;
using check::onRanks;
using check::Primary;
using check::Rank;

namespace {

constexpr int kDevices = 4;
const bool isConfigured = [] {
  setenv("SHOAL_SIM_DEVICES", "4", 1);
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "20", 1);
  return true;
}();

bool isSlow() { return getenv("SHOAL_TEST_SLOW") != nullptr; }

struct All {
  std::vector<ncclComm_t> comms;
  std::vector<CUcontext> contexts;
  std::vector<CUstream> streams;
  explicit All(int ranks)
      : comms(static_cast<size_t>(ranks)), contexts(static_cast<size_t>(ranks)), streams(static_cast<size_t>(ranks)) {
    OK(cuInit(0));
    NCCL(ncclCommInitAll(comms.data(), ranks, nullptr));
    for (int rank = 0; rank < ranks; ++rank) {
      OK(cuDevicePrimaryCtxRetain(&contexts[static_cast<size_t>(rank)], rank));
      use(rank);
      streams[static_cast<size_t>(rank)] = check::stream();
    }
  }
  ~All() {
    for (size_t rank = 0; rank < comms.size(); ++rank) {
      if (comms[rank] != nullptr) ncclCommDestroy(comms[rank]);
      cuDevicePrimaryCtxRelease_v2(static_cast<int>(rank));
    }
    cuCtxSetCurrent(nullptr);
  }
  void use(int rank) { OK(cuCtxSetCurrent(contexts[static_cast<size_t>(rank)])); }
};

}  // namespace

TEST(the_version_is_told) {
  int version = 0;
  NCCL(ncclGetVersion(&version));
  EQUAL(version, 23007);
  EQUAL(ncclGetVersion(nullptr), ncclInvalidArgument);
  for (int result = 0; result <= 9; ++result) CHECK(strlen(ncclGetErrorString(static_cast<ncclResult_t>(result))) > 3);
}

TEST(one_rank_alone) {
  onRanks(1, [](Rank& self) { check::checkAll(self, 5000); });
}
TEST(two_ranks) {
  onRanks(2, [](Rank& self) { check::checkAll(self, isSlow() ? 5000 : 50003); });
}
TEST(three_ranks) {
  onRanks(3, [](Rank& self) { check::checkAll(self, isSlow() ? 3000 : 10001); });
}
TEST(four_ranks) {
  onRanks(4, [](Rank& self) { check::checkAll(self, isSlow() ? 3000 : 10000); });
}

TEST(one_thread_drives_all_ranks_in_a_group) {
  All all(kDevices);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int rank = 0; rank < kDevices; ++rank) {
    all.use(rank);
    buffers.push_back(std::make_unique<Buffer>(4000));
    OK(cuMemsetD32_v2(reinterpret_cast<CUdeviceptr>(buffers.back()->at()), static_cast<unsigned>(rank + 1), 1000));
  }
  CUcontext before = nullptr, after = nullptr;
  OK(cuCtxGetCurrent(&before));
  NCCL(ncclGroupStart());
  for (size_t rank = 0; rank < kDevices; ++rank) {
    NCCL(ncclAllReduce(buffers[rank]->at(), buffers[rank]->at(), 1000, ncclInt32, ncclSum, all.comms[rank],
                       all.streams[rank]));
  }
  NCCL(ncclGroupEnd());
  OK(cuCtxGetCurrent(&after));
  CHECK(before == after);
  for (int rank = 0; rank < kDevices; ++rank) {
    all.use(rank);
    OK(cuStreamSynchronize(all.streams[static_cast<size_t>(rank)]));
    const auto data = buffers[static_cast<size_t>(rank)]->get(4000);
    int value = 0;
    memcpy(&value, &data[3996], 4);
    EQUAL(value, 10);
    int number = -1;
    NCCL(ncclCommUserRank(all.comms[static_cast<size_t>(rank)], &number));
    EQUAL(number, rank);
    NCCL(ncclCommCuDevice(all.comms[static_cast<size_t>(rank)], &number));
    EQUAL(number, rank);
    NCCL(ncclCommCount(all.comms[static_cast<size_t>(rank)], &number));
    EQUAL(number, kDevices);
  }
  buffers.clear();
}

TEST(without_a_group_the_ranks_are_only_queued) {
  All all(2);
  CUdeviceptr memory[2];
  for (int rank = 0; rank < 2; ++rank) {
    all.use(rank);
    memory[rank] = check::memory(64);
    OK(cuMemsetD32_v2(memory[rank], 5, 16));
    auto* buffer = reinterpret_cast<void*>(memory[rank]);
    NCCL(ncclAllReduce(buffer, buffer, 16, ncclInt32, ncclSum, all.comms[static_cast<size_t>(rank)],
                       all.streams[static_cast<size_t>(rank)]));
    if (rank == 0) EQUAL(cuStreamQuery(all.streams[0]), CUDA_ERROR_NOT_READY);
  }
  all.use(0);
  OK(cuStreamSynchronize(all.streams[0]));
  unsigned value = 0;
  OK(cuMemcpyDtoH_v2(&value, memory[0], 4));
  EQUAL(value, 10);
}

TEST(one_thread_initialises_several_ranks_in_a_group) {
  OK(cuInit(0));
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  ncclComm_t comms[3] = {};
  NCCL(ncclGroupStart());
  for (int rank = 0; rank < 3; ++rank) {
    Primary primary(rank);
    NCCL(ncclCommInitRank(&comms[rank], 3, id, rank));
  }
  NCCL(ncclGroupEnd());
  for (auto comm : comms) {
    int count = 0;
    NCCL(ncclCommCount(comm, &count));
    EQUAL(count, 3);
    NCCL(ncclCommDestroy(comm));
    EQUAL(ncclCommCount(comm, &count), ncclInvalidArgument);
  }
}

TEST(work_of_one_communicator_keeps_its_order_across_streams) {
  onRanks(2, [](Rank& self) {
    CUstream other = check::stream();
    Buffer buffer(4);
    const int one = 1;
    OK(cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(buffer.at()), &one, 4));
    OK(shoalSimStreamDelay(self.stream, 20000000));
    for (int round = 0; round < 10; ++round) {
      NCCL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, self.comm,
                         round % 2 == 0 ? self.stream : other));
    }
    OK(cuStreamSynchronize(other));
    check::finish(self);
    int value = 0;
    OK(cuMemcpyDtoH_v2(&value, reinterpret_cast<CUdeviceptr>(buffer.at()), 4));
    EQUAL(value, 1 << 10);
  });
}

TEST(a_scalar_on_the_device_is_read_in_stream_order) {
  onRanks(2, [](Rank& self) {
    Buffer scalar(4), data(4);
    ncclRedOp_t op;
    NCCL(ncclRedOpCreatePreMulSum(&op, scalar.at(), ncclInt32, ncclScalarDevice, self.comm));
    OK(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(data.at()), 10, 1, self.stream));
    OK(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(scalar.at()), static_cast<unsigned>(self.rank + 2), 1,
                        self.stream));
    NCCL(ncclAllReduce(data.at(), data.at(), 1, ncclInt32, op, self.comm, self.stream));
    check::finish(self);
    int value = 0;
    OK(cuMemcpyDtoH_v2(&value, reinterpret_cast<CUdeviceptr>(data.at()), 4));
    EQUAL(value, 10 * 2 + 10 * 3);
  });
}

TEST(wrong_arguments_are_refused) {
  All all(2);
  all.use(0);
  const auto comm = all.comms[0];
  const auto stream = all.streams[0];
  Buffer buffer(1024);
  void* data = buffer.at();
  const auto reduce = [&](const void* send, void* recv, size_t count, int type, int op, ncclComm_t on, CUstream in) {
    return ncclAllReduce(send, recv, count, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), on, in);
  };
  const auto saysSomething = [] { return strlen(ncclGetLastError(nullptr)) > 10; };
  EQUAL(reduce(data, data, 257, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
  CHECK(strstr(ncclGetLastError(comm), "1028 bytes") != nullptr);
  EQUAL(reduce(nullptr, data, 4, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
  EQUAL(reduce(data, nullptr, 4, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
  EQUAL(reduce(data, data, 4, 12, ncclSum, comm, stream), ncclInvalidArgument);
  EQUAL(reduce(data, data, 4, -1, ncclSum, comm, stream), ncclInvalidArgument);
  EQUAL(reduce(data, data, 4, ncclFloat32, 5, comm, stream), ncclInvalidArgument);
  EQUAL(reduce(data, data, 4, ncclFloat32, -1, comm, stream), ncclInvalidArgument);
  EQUAL(reduce(data, data, ~size_t{0}, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
  EQUAL(reduce(data, data, 4, ncclFloat32, ncclSum, nullptr, stream), ncclInvalidArgument);
  EQUAL(reduce(data, data, 4, ncclFloat32, ncclSum, reinterpret_cast<ncclComm_t>(0x1234560), stream),
        ncclInvalidArgument);
  CHECK(saysSomething());
  EQUAL(reduce(data, data, 4, ncclFloat32, ncclSum, comm, reinterpret_cast<CUstream>(0x1234560)),
        ncclUnhandledCudaError);
  EQUAL(reduce(data, data, 4, ncclFloat32, ncclSum, comm, all.streams[1]), ncclInvalidUsage);
  EQUAL(reduce(data, data, 4, ncclFloat32, ncclSum, all.comms[1], all.streams[1]),
        ncclInvalidArgument);  // memory of device 0
  float host[4];
  EQUAL(reduce(host, data, 4, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
  EQUAL(ncclBroadcast(data, data, 4, ncclFloat32, 2, comm, stream), ncclInvalidArgument);
  EQUAL(ncclBroadcast(data, data, 4, ncclFloat32, -1, comm, stream), ncclInvalidArgument);
  EQUAL(ncclSend(data, 4, ncclFloat32, 7, comm, stream), ncclInvalidArgument);
  EQUAL(ncclSend(data, 4, ncclFloat32, 0, comm, stream), ncclInvalidUsage);
  EQUAL(ncclGroupEnd(), ncclInvalidUsage);
  // An error inside a group is the result of the group.
  NCCL(ncclGroupStart());
  NCCL(reduce(data, data, 4, ncclFloat32, ncclSum, comm, stream));
  EQUAL(reduce(data, data, 4, 99, ncclSum, comm, stream), ncclInvalidArgument);
  EQUAL(ncclGroupEnd(), ncclInvalidArgument);
  OK(cuStreamQuery(stream));
  ncclComm_t made[2];
  const int twice[] = {1, 1}, absent[] = {0, 9};
  EQUAL(ncclCommInitAll(made, 0, nullptr), ncclInvalidArgument);
  EQUAL(ncclCommInitAll(made, 2, twice), ncclInvalidUsage);
  EQUAL(ncclCommInitAll(made, 2, absent), ncclInvalidArgument);
  ncclUniqueId id, wrong = {};
  NCCL(ncclGetUniqueId(&id));
  EQUAL(ncclCommInitRank(made, 2, id, 2), ncclInvalidArgument);
  EQUAL(ncclCommInitRank(made, 0, id, 0), ncclInvalidArgument);
  EQUAL(ncclCommInitRank(made, 1, wrong, 0), ncclInvalidArgument);
  ncclConfig_t config = {};
  EQUAL(ncclCommInitRankConfig(made, 1, id, 0, &config), ncclInvalidArgument);
  config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 7;
  EQUAL(ncclCommInitRankConfig(made, 1, id, 0, &config), ncclInvalidArgument);
  CHECK(strstr(ncclGetLastError(nullptr), "blocking") != nullptr);
}

TEST(a_non_blocking_communicator_comes_up_later) {
  Primary primary;
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t first = nullptr;
  EQUAL(ncclCommInitRankConfig(&first, 2, id, 0, &config), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  NCCL(ncclCommGetAsyncError(first, &state));
  EQUAL(state, ncclInProgress);
  Buffer buffer(4);
  EQUAL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, first, nullptr), ncclInvalidArgument);
  std::thread([&] {
    Primary second(1);
    ncclComm_t comm = nullptr;
    NCCL(ncclCommInitRank(&comm, 2, id, 1));
    NCCL(ncclCommDestroy(comm));
  }).join();
  do NCCL(ncclCommGetAsyncError(first, &state));
  while (state == ncclInProgress);
  EQUAL(state, ncclSuccess);
  NCCL(ncclCommFinalize(first) == ncclInProgress ? ncclSuccess : ncclInternalError);
  do NCCL(ncclCommGetAsyncError(first, &state));
  while (state == ncclInProgress);
  EQUAL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, first, nullptr), ncclInvalidUsage);
  NCCL(ncclCommDestroy(first));
}

TEST(disagreeing_ranks_are_told) {
  onRanks(2, [](Rank& self) {
    Buffer buffer(64);
    NCCL(ncclAllReduce(buffer.at(), buffer.at(), self.rank == 0 ? 3 : 4, ncclInt32, ncclSum, self.comm, self.stream));
    OK(cuStreamSynchronize(self.stream));
    ncclResult_t error = ncclSuccess;
    NCCL(ncclCommGetAsyncError(self.comm, &error));
    EQUAL(error, ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(self.comm), "count") != nullptr);
    EQUAL(ncclAllReduce(buffer.at(), buffer.at(), 3, ncclInt32, ncclSum, self.comm, self.stream), ncclInvalidUsage);
  });
}

TEST(ranks_that_disagree_on_the_root_are_told) {
  onRanks(2, [](Rank& self) {
    Buffer buffer(64);
    NCCL(ncclBroadcast(buffer.at(), buffer.at(), 3, ncclInt32, self.rank, self.comm, self.stream));
    OK(cuStreamSynchronize(self.stream));
    ncclResult_t error = ncclSuccess;
    NCCL(ncclCommGetAsyncError(self.comm, &error));
    EQUAL(error, ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(self.comm), "root") != nullptr);
  });
}

template <class Float>
void reduceNaNs(Rank& self, ncclDataType_t type, Float one, Float two, Float notANumber) {
  const Float inputs[2][3] = {{notANumber, two, notANumber}, {one, notANumber, notANumber}};
  for (const ncclRedOp_t op : {ncclMax, ncclMin, ncclSum}) {
    Buffer buffer(64);
    const auto address = reinterpret_cast<CUdeviceptr>(buffer.at());
    OK(cuMemcpyHtoDAsync_v2(address, inputs[self.rank], sizeof inputs[0], self.stream));
    NCCL(ncclAllReduce(buffer.at(), buffer.at(), 3, type, op, self.comm, self.stream));
    Float found[3];
    OK(cuMemcpyDtoHAsync_v2(found, address, sizeof found, self.stream));
    OK(cuStreamSynchronize(self.stream));
    const auto isNumber = [&](int index) {
      return check::decode(type, &found[index]) == check::decode(type, &found[index]);
    };
    if (op == ncclSum) {
      for (int index = 0; index < 3; ++index) CHECK(!isNumber(index));
      continue;
    }
    CHECK(memcmp(&found[0], &one, sizeof one) == 0 && memcmp(&found[1], &two, sizeof two) == 0 && !isNumber(2));
  }
}

TEST(a_nan_loses_against_a_number_and_spoils_a_sum) {
  onRanks(2, [](Rank& self) {
    reduceNaNs<float>(self, ncclFloat32, 1, 2, NAN);
    reduceNaNs<double>(self, ncclFloat64, 1, 2, NAN);
    reduceNaNs<uint16_t>(self, ncclFloat16, 0x3c00, 0x4000, 0x7e00);
    reduceNaNs<uint16_t>(self, ncclBfloat16, 0x3f80, 0x4000, 0x7fc0);
  });
}

TEST(abort_unblocks_what_is_pending) {
  All all(2);
  all.use(0);
  CUdeviceptr memory = check::memory(64);
  auto* data = reinterpret_cast<void*>(memory);
  NCCL(ncclAllReduce(data, data, 16, ncclInt32, ncclSum, all.comms[0], all.streams[0]));
  usleep(20000);
  EQUAL(cuStreamQuery(all.streams[0]), CUDA_ERROR_NOT_READY);
  const auto start = std::chrono::steady_clock::now();
  NCCL(ncclCommAbort(all.comms[0]));
  OK(cuStreamSynchronize(all.streams[0]));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
  int count = 0;
  EQUAL(ncclCommCount(all.comms[0], &count), ncclInvalidArgument);
  all.comms[0] = nullptr;
  // The other rank gets the error, too.
  all.use(1);
  CUdeviceptr second = check::memory(64);
  data = reinterpret_cast<void*>(second);
  const ncclResult_t asked = ncclAllReduce(data, data, 16, ncclInt32, ncclSum, all.comms[1], all.streams[1]);
  OK(cuStreamSynchronize(all.streams[1]));
  ncclResult_t error = ncclSuccess;
  NCCL(ncclCommGetAsyncError(all.comms[1], &error));
  EQUAL(error, ncclRemoteError);
  CHECK(asked == ncclSuccess || asked == ncclRemoteError);
  NCCL(ncclCommAbort(all.comms[1]));
  all.comms[1] = nullptr;
}

TEST(a_failed_context_fails_its_peers) {
  All all(2);
  for (int rank = 0; rank < 2; ++rank) {
    all.use(rank);
    CUdeviceptr memory = check::memory(64);
    auto* data = reinterpret_cast<void*>(memory);
    if (rank == 0) OK(shoalSimStreamDelay(all.streams[0], 30000000));
    NCCL(ncclAllReduce(data, data, 16, ncclInt32, ncclSum, all.comms[static_cast<size_t>(rank)],
                       all.streams[static_cast<size_t>(rank)]));
  }
  OK(shoalSimInjectError(0, CUDA_ERROR_LAUNCH_FAILED));
  OK(cuStreamSynchronize(all.streams[1]));
  ncclResult_t error = ncclSuccess;
  NCCL(ncclCommGetAsyncError(all.comms[1], &error));
  EQUAL(error, ncclRemoteError);
  NCCL(ncclCommGetAsyncError(all.comms[0], &error));
  EQUAL(error, ncclUnhandledCudaError);
  OK(shoalSimInjectError(0, CUDA_SUCCESS));
}

TEST(registrations_and_memory) {
  All all(1);
  all.use(0);
  void *memory = nullptr, *handle = nullptr;
  NCCL(ncclMemAlloc(&memory, 4096));
  NCCL(ncclCommRegister(all.comms[0], memory, 4096, &handle));
  NCCL(ncclCommDeregister(all.comms[0], handle));
  EQUAL(ncclCommDeregister(all.comms[0], handle), ncclInvalidArgument);
  EQUAL(ncclCommRegister(all.comms[0], memory, 4 << 20, &handle),
        ncclInvalidArgument);  // memory has a granularity of 2 MiB
  NCCL(ncclMemFree(memory));
  EQUAL(ncclMemFree(memory), ncclUnhandledCudaError);
}

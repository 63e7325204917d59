// Memory of ncclMemAlloc, windows, puts and signals, between threads and between processes.
#include "nccl_ranks.h"
#include "process.h"

using check::onRanks;
using check::Primary;
using check::Rank;

namespace {

constexpr size_t kBytes = 1 << 20;
const bool isConfigured = [] {
  setenv("SHOAL_SIM_DEVICES", "4", 1);
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "10", 1);
  return true;
}();

char* address(void* memory, size_t offset = 0) { return static_cast<char*>(memory) + offset; }
CUdeviceptr pointer(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
unsigned word(const void* memory) {
  unsigned value = 0;
  OK(cuMemcpyDtoH_v2(&value, pointer(memory), 4));
  return value;
}

struct Symmetric {
  ncclComm_t comm;
  void* memory = nullptr;
  ncclWindow_t window = nullptr;
  explicit Symmetric(ncclComm_t on, int flags = NCCL_WIN_COLL_SYMMETRIC) : comm(on) {
    NCCL(ncclMemAlloc(&memory, kBytes));
    OK(cuMemsetD8_v2(pointer(memory), 0, kBytes));
    NCCL(ncclCommWindowRegister(comm, memory, kBytes, &window, flags));
    CHECK(window != nullptr);
  }
  ~Symmetric() {
    ncclCommWindowDeregister(comm, window);
    ncclMemFree(memory);
  }
};

// Each rank puts data into the next rank, which waits for it. Many times around the ring.
void ring(const Rank& self) {
  Symmetric own(self.comm);
  const int next = (self.rank + 1) % self.ranks, previous = (self.rank + self.ranks - 1) % self.ranks;
  for (unsigned round = 1; round <= 40; ++round) {
    OK(cuMemsetD32Async(pointer(own.memory), round * 100 + static_cast<unsigned>(self.rank), 64, self.stream));
    NCCL(ncclPutSignal(own.memory, 64, ncclUint32, next, own.window, 4096, 0, 0, 0, self.comm, self.stream));
    ncclWaitSignalDesc_t wait = {1, previous, 0, 0};
    NCCL(ncclWaitSignal(1, &wait, self.comm, self.stream));
    check::finish(self);
    EQUAL(word(address(own.memory, 4096 + 63 * 4)), round * 100 + static_cast<unsigned>(previous));
    // The next put must wait until the data was read.
    NCCL(ncclSignal(previous, 0, 0, 0, self.comm, self.stream));
    wait = {1, next, 0, 0};
    NCCL(ncclWaitSignal(1, &wait, self.comm, self.stream));
  }
  check::finish(self);
}

// All-to-all in one group together with the waits, and with a count above one.
void everybody(const Rank& self) {
  Symmetric own(self.comm);
  OK(cuMemsetD32_v2(pointer(own.memory), 7u + static_cast<unsigned>(self.rank), 16));
  NCCL(ncclGroupStart());
  std::vector<ncclWaitSignalDesc_t> waits;
  for (int peer = 0; peer < self.ranks; ++peer) waits.push_back({2, peer, 0, 0});
  NCCL(ncclWaitSignal(self.ranks, waits.data(), self.comm, self.stream));
  for (int peer = 0; peer < self.ranks; ++peer) {
    const size_t place = 4096 + static_cast<size_t>(self.rank) * 64;
    NCCL(ncclPutSignal(own.memory, 16, ncclFloat32, peer, own.window, place, 0, 0, 0, self.comm, self.stream));
    NCCL(ncclPutSignal(own.memory, 0, ncclInt8, peer, own.window, 0, 0, 0, 0, self.comm, self.stream));
  }
  NCCL(ncclGroupEnd());
  check::finish(self);
  for (int peer = 0; peer < self.ranks; ++peer) {
    EQUAL(word(address(own.memory, 4096 + static_cast<size_t>(peer) * 64 + 60)), 7 + peer);
  }
}

// The window addresses of other ranks point to their memory.
void pointers(const Rank& self) {
  Symmetric own(self.comm);
  OK(cuMemsetD32_v2(pointer(own.memory), 40u + static_cast<unsigned>(self.rank), 1));
  void* user = nullptr;
  NCCL(ncclWinGetUserPtr(self.comm, own.window, &user));
  CHECK(user == own.memory);
  const auto all = [&] {
    OK(cuMemsetD32_v2(pointer(address(own.memory, 64)), 0, 1));
    NCCL(
        ncclAllReduce(address(own.memory, 64), address(own.memory, 64), 1, ncclInt32, ncclSum, self.comm, self.stream));
    check::finish(self);
  };
  all();
  for (int peer = 0; peer < self.ranks; ++peer) {
    void *lsa = nullptr, *world = nullptr;
    NCCL(ncclGetLsaDevicePointer(own.window, 0, peer, &lsa));
    NCCL(ncclGetPeerDevicePointer(own.window, 16, peer, &world));
    CHECK(world == address(lsa, 16));
    EQUAL(word(lsa), 40 + peer);
    if (peer == self.rank) CHECK(lsa == own.memory);
    // A write through this address is visible to the owner.
    const unsigned mark = 1000u + static_cast<unsigned>(self.rank);
    OK(cuMemsetD32_v2(pointer(address(lsa, 1024 + static_cast<size_t>(self.rank) * 4)), mark, 1));
  }
  all();
  for (int peer = 0; peer < self.ranks; ++peer)
    EQUAL(word(address(own.memory, 1024 + static_cast<size_t>(peer) * 4)), 1000 + peer);
  all();
}

// After a window is gone, the addresses of its mappings can be reused.
void addressesAreFree(const Rank& self) {
  std::vector<CUdeviceptr> theirs;
  {
    Symmetric own(self.comm);
    for (int peer = 0; peer < self.ranks; ++peer) {
      void* there = nullptr;
      NCCL(ncclGetLsaDevicePointer(own.window, 0, peer, &there));
      if (peer != self.rank) theirs.push_back(pointer(there));
    }
  }
  for (const CUdeviceptr there : theirs) {
    CUdeviceptr again = 0;
    OK(cuMemAddressReserve(&again, 2 << 20, 0, there, 0));
    EQUAL(again, there);
    OK(cuMemAddressFree(again, 2 << 20));
  }
}

// A window on a part of memory from cuMemAlloc.
void plain(const Rank& self) {
  CUdeviceptr memory = check::memory(4 << 20);
  const CUdeviceptr start = (memory + 4095) / 4096 * 4096 + 8192;
  OK(cuMemsetD8_v2(memory, 0, 4 << 20));
  ncclWindow_t window = nullptr;
  const auto open = [&](int flags) {
    return ncclCommWindowRegister(self.comm, reinterpret_cast<void*>(start), kBytes, &window, flags);
  };
  // As on hardware: each rank would have to map the memory of the others, and cuMemAlloc memory cannot be mapped.
  EQUAL(open(NCCL_WIN_COLL_SYMMETRIC), ncclUnhandledCudaError);
  CHECK(window == nullptr);
  NCCL(open(NCCL_WIN_DEFAULT));
  void* user = nullptr;
  NCCL(ncclWinGetUserPtr(self.comm, window, &user));
  CHECK(user == reinterpret_cast<void*>(start));
  NCCL(ncclCommWindowDeregister(self.comm, window));
  OK(cuMemFree_v2(memory));
}

// A write to the multicast address reaches all ranks.
void multicast(const Rank& self) {
  Symmetric own(self.comm);
  const auto synchronize = [&] {
    NCCL(ncclAllReduce(own.memory, own.memory, 1, ncclInt32, ncclSum, self.comm, self.stream));
    check::finish(self);
  };
  void *all = nullptr, *same = nullptr;
  NCCL(ncclGetLsaMultimemDevicePointer(own.window, 8192, &all));
  CHECK(all != nullptr);
  NCCL(ncclGetMultimemDevicePointer(own.window, 8192, {all}, &same));
  CHECK(same == all);
  NCCL(ncclGetMultimemDevicePointer(own.window, 8192, {nullptr}, &same));
  CHECK(same == nullptr);
  EQUAL(ncclGetLsaMultimemDevicePointer(own.window, kBytes, &all), ncclInvalidArgument);
  synchronize();
  OK(cuMemsetD32_v2(pointer(all) + static_cast<size_t>(self.rank) * 4, 300u + static_cast<unsigned>(self.rank), 1));
  synchronize();
  for (int rank = 0; rank < self.ranks; ++rank)
    EQUAL(word(address(own.memory, 8192 + static_cast<size_t>(rank) * 4)), 300 + rank);
  synchronize();
}

void disagreement(const Rank& self) {
  void* memory = nullptr;
  NCCL(ncclMemAlloc(&memory, kBytes));
  ncclWindow_t window = nullptr;
  const size_t bytes = self.rank == 0 ? kBytes : kBytes / 2;
  EQUAL(ncclCommWindowRegister(self.comm, memory, bytes, &window, NCCL_WIN_COLL_SYMMETRIC), ncclInvalidUsage);
  CHECK(window == nullptr);
  EQUAL(ncclCommWindowRegister(self.comm, memory, bytes, &window, self.rank == 0 ? 0 : NCCL_WIN_STRICT_ORDERING),
        ncclInvalidUsage);
  // Other windows may differ in size between ranks.
  NCCL(ncclCommWindowRegister(self.comm, memory, bytes, &window, NCCL_WIN_DEFAULT));
  void* there = nullptr;
  EQUAL(ncclGetPeerDevicePointer(window, kBytes / 2, 1, &there), ncclInvalidArgument);
  NCCL(ncclGetPeerDevicePointer(window, kBytes / 2, 0, &there));
  EQUAL(ncclPutSignal(memory, 1, ncclInt8, 0, window, 0, 0, 0, 0, self.comm, self.stream), ncclInvalidArgument);
  NCCL(ncclCommWindowDeregister(self.comm, window));
  NCCL(ncclMemFree(memory));
}

void all(const Rank& self) {
  ring(self);
  everybody(self);
  pointers(self);
  plain(self);
  multicast(self);
  disagreement(self);
}

void runRank(const ncclUniqueId& id, int ranks, int rank, void (*body)(const Rank&)) {
  Primary primary(rank);
  Rank self = {nullptr, check::stream(), rank, ranks};
  NCCL(ncclCommInitRank(&self.comm, ranks, id, rank));
  body(self);
  NCCL(ncclCommDestroy(self.comm));
}

struct Start {
  ncclUniqueId id;
  int ranks, rank;
};

void asRank(process::Peer& parent) {
  const auto start = parent.receive<Start>();
  runRank(start.id, start.ranks, start.rank, [](const Rank& self) {
    all(self);
    addressesAreFree(self);
  });
}

// A process that dies before it signals.
void asKilled(process::Peer& parent) {
  const auto start = parent.receive<Start>();
  Primary primary(start.rank);
  ncclComm_t comm = nullptr;
  NCCL(ncclCommInitRank(&comm, start.ranks, start.id, start.rank));
  usleep(100000);
  kill(getpid(), SIGKILL);
}

ROLES({"rank", asRank}, {"killed", asKilled});

}  // namespace

TEST(threads_put_and_signal) {
  for (const int ranks : {1, 2, 4}) {
    onRanks(ranks, ring);
    onRanks(ranks, everybody);
    onRanks(ranks, pointers);
    onRanks(ranks, plain);
  }
  for (const int ranks : {2, 3}) onRanks(ranks, multicast);
  onRanks(2, disagreement);
}

TEST(processes_put_and_signal) {
  for (const int ranks : {2, 3}) {
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    std::vector<std::unique_ptr<process::Child>> children;
    for (int rank = 0; rank < ranks; ++rank) {
      children.push_back(std::make_unique<process::Child>("rank"));
      children.back()->send(Start{id, ranks, rank});
    }
    for (auto& child : children) EQUAL(child->wait(), 0);
  }
}

TEST(a_killed_rank_ends_the_wait_for_its_signals) {
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  process::Child killed("killed");
  killed.send(Start{id, 2, 1});
  Primary primary;
  Rank self = {nullptr, check::stream(), 0, 2};
  NCCL(ncclCommInitRank(&self.comm, 2, id, 0));
  ncclWaitSignalDesc_t wait = {1, 1, 0, 0};
  NCCL(ncclWaitSignal(1, &wait, self.comm, self.stream));
  OK(cuStreamSynchronize(self.stream));
  ncclResult_t error = ncclSuccess;
  NCCL(ncclCommGetAsyncError(self.comm, &error));
  EQUAL(error, ncclRemoteError);
  NCCL(ncclCommAbort(self.comm));
  EQUAL(killed.wait(), 1000 + SIGKILL);
}

TEST(a_wait_does_not_hold_other_streams_up) {
  onRanks(2, [](const Rank& self) {
    CUstream other = check::stream();
    ncclWaitSignalDesc_t wait = {3, 1 - self.rank, 0, 0};
    NCCL(ncclWaitSignal(1, &wait, self.comm, self.stream));
    for (int signal = 0; signal < 3; ++signal) NCCL(ncclSignal(1 - self.rank, 0, 0, 0, self.comm, other));
    OK(cuStreamSynchronize(other));
    check::finish(self);
  });
}

TEST(wrong_windows_and_puts_are_refused) {
  Primary primary;
  ncclComm_t comm = nullptr, other = nullptr;
  NCCL(ncclCommInitAll(&comm, 1, nullptr));
  NCCL(ncclCommInitAll(&other, 1, nullptr));
  CUstream stream = check::stream();
  {
    Symmetric own(comm);
    ncclWindow_t made = nullptr;
    void* out = nullptr;
    const auto refused = [](ncclResult_t result) { EQUAL(result, ncclInvalidArgument); };
    refused(ncclCommWindowRegister(comm, nullptr, 16, &made, 0));
    refused(ncclCommWindowRegister(comm, own.memory, 0, &made, 0));
    refused(ncclCommWindowRegister(comm, own.memory, 16, nullptr, 0));
    refused(ncclCommWindowRegister(comm, address(own.memory, 256), 16, &made, 0));
    refused(ncclCommWindowRegister(comm, own.memory, 4 << 20, &made, 0));
    refused(ncclCommWindowRegister(comm, own.memory, 16, &made, 8));
    refused(ncclCommWindowDeregister(other, own.window));
    EQUAL(ncclCommWindowDeregister(comm, reinterpret_cast<ncclWindow_t>(0x40)), ncclInternalError);
    NCCL(ncclCommWindowDeregister(comm, nullptr));
    refused(ncclWinGetUserPtr(other, own.window, &out));
    refused(ncclWinGetUserPtr(comm, nullptr, &out));
    refused(ncclGetLsaDevicePointer(own.window, 0, 1, &out));
    refused(ncclGetLsaDevicePointer(own.window, kBytes, 0, &out));
    refused(ncclGetLsaDevicePointer(own.window, 0, 0, nullptr));
    refused(ncclGetPeerDevicePointer(own.window, 0, -1, &out));
    refused(ncclGetPeerDevicePointer(nullptr, 0, 0, &out));
    out = &out;
    NCCL(ncclGetLsaMultimemDevicePointer(own.window, 0, &out));
    CHECK(out == nullptr);
    const auto put = [&](const void* from, size_t count, int type, int peer, ncclWindow_t window, size_t offset,
                         int sigIdx, int ctx, unsigned flags) {
      return ncclPutSignal(from, count, static_cast<ncclDataType_t>(type), peer, window, offset, sigIdx, ctx, flags,
                           comm, stream);
    };
    const char* memory = address(own.memory);
    NCCL(put(memory, 4, ncclInt32, 0, own.window, 1024, 0, 0, 0));
    refused(put(nullptr, 4, ncclInt32, 0, own.window, 0, 0, 0, 0));
    refused(put(memory, 4, 12, 0, own.window, 0, 0, 0, 0));
    refused(put(memory, 4, ncclInt32, 1, own.window, 0, 0, 0, 0));
    refused(put(memory, 4, ncclInt32, 0, nullptr, 0, 0, 0, 0));
    refused(put(memory, 4, ncclInt32, 0, own.window, kBytes - 15, 0, 0, 0));
    refused(put(memory, ~size_t{0}, ncclInt32, 0, own.window, 0, 0, 0, 0));
    refused(put(memory, 4, ncclInt32, 0, own.window, 0, 1, 0, 0));
    refused(put(memory, 4, ncclInt32, 0, own.window, 0, 0, 1, 0));
    refused(put(memory, 4, ncclInt32, 0, own.window, 0, 0, 0, 1));
    check::Buffer outside(64);
    refused(put(outside.at(), 4, ncclInt32, 0, own.window, 0, 0, 0, 0));
    ncclWaitSignalDesc_t wait = {0, 0, 0, 0};
    refused(ncclWaitSignal(0, &wait, comm, stream));
    refused(ncclWaitSignal(1, nullptr, comm, stream));
    refused(ncclWaitSignal(1, &wait, comm, stream));
    wait = {1, 0, 1, 0};
    refused(ncclWaitSignal(1, &wait, comm, stream));
    refused(ncclSignal(0, 0, 0, 1, comm, stream));
    refused(ncclSignal(4, 0, 0, 0, comm, stream));
    OK(cuStreamSynchronize(stream));
    ncclWindow_t once = own.window;
    NCCL(ncclCommWindowDeregister(comm, once));
    EQUAL(ncclCommWindowDeregister(comm, once), ncclInternalError);
    refused(put(memory, 4, ncclInt32, 0, once, 1024, 0, 0, 0));
  }
  NCCL(ncclCommDestroy(comm));
  NCCL(ncclCommDestroy(other));
}

TEST(what_windows_took_is_given_back) {
  size_t before[2], after[2], total = 0;
  for (int round = 0; round < 2; ++round) {
    for (int device = 0; device < 2; ++device) {
      Primary primary(device);
      OK(cuMemGetInfo_v2(round == 0 ? &before[device] : &after[device], &total));
    }
    if (round == 0) {
      for (int times = 0; times < 5; ++times) onRanks(2, multicast);
    }
  }
  EQUAL(after[0], before[0]);
  EQUAL(after[1], before[1]);
}

TEST(memory_is_reached_by_all_devices) {
  Primary first(0);
  void* memory = nullptr;
  NCCL(ncclMemAlloc(&memory, 100));
  EQUAL(pointer(memory) % NCCL_WIN_REQUIRED_ALIGNMENT, 0);
  {
    Primary second(1);
    OK(cuMemsetD32_v2(pointer(memory), 77, 25));
  }
  EQUAL(word(memory), 77);
  size_t before = 0, after = 0, total = 0;
  OK(cuMemGetInfo_v2(&before, &total));
  NCCL(ncclMemFree(memory));
  OK(cuMemGetInfo_v2(&after, &total));
  CHECK(after > before);
  EQUAL(ncclMemFree(memory), ncclUnhandledCudaError);
  EQUAL(ncclMemAlloc(&memory, size_t{1} << 50), ncclUnhandledCudaError);
  EQUAL(ncclMemAlloc(&memory, ~size_t{0}), ncclUnhandledCudaError);
}

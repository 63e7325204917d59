// Communicators that are derived, revoked, suspended or non-blocking. All ranks are in one process.
#include <atomic>
#include <chrono>

#include "nccl_ranks.h"

using check::Buffer;
using check::inThreads;
using check::onRanks;
using check::Primary;
using check::Rank;

namespace {

const bool isConfigured = [] {
  setenv("SHOAL_SIM_DEVICES", "6", 1);
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "10", 1);
  return true;
}();

int sum(ncclComm_t comm, CUstream stream, int own) {
  Buffer buffer(4);
  OK(cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(buffer.at()), &own, 4));
  NCCL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, comm, stream));
  OK(cuStreamSynchronize(stream));
  int total = 0;
  OK(cuMemcpyDtoH_v2(&total, reinterpret_cast<CUdeviceptr>(buffer.at()), 4));
  return total;
}

int rankOf(ncclComm_t comm) {
  int rank = -1;
  NCCL(ncclCommUserRank(comm, &rank));
  return rank;
}
int countOf(ncclComm_t comm) {
  int count = -1;
  NCCL(ncclCommCount(comm, &count));
  return count;
}

ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  do NCCL(ncclCommGetAsyncError(comm, &state));
  while (state == ncclInProgress);
  return state;
}

ncclConfig_t nonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

}  // namespace

TEST(ranks_of_a_colour_split_off_in_the_order_of_their_keys) {
  onRanks(5, [](Rank& self) {
    ncclComm_t made = reinterpret_cast<ncclComm_t>(1);
    NCCL(ncclCommSplit(self.comm, self.rank == 2 ? NCCL_SPLIT_NOCOLOR : self.rank % 2, 10 - self.rank, &made, nullptr));
    EQUAL(made == nullptr, self.rank == 2);
    if (made != nullptr) {
      EQUAL(countOf(made), 2);
      EQUAL(rankOf(made), self.rank < 2 ? 1 : 0);
      EQUAL(sum(made, self.stream, self.rank), self.rank % 2 == 0 ? 4 : 4);
      int device = -1;
      NCCL(ncclCommCuDevice(made, &device));
      EQUAL(device, self.rank);
    }
    EQUAL(sum(self.comm, self.stream, 1), 5);
    // The parent may be destroyed first.
    NCCL(ncclCommDestroy(self.comm));
    self.comm = nullptr;
    if (made != nullptr) {
      EQUAL(sum(made, self.stream, 1), 2);
      NCCL(ncclCommDestroy(made));
    }
  });
}

TEST(many_splits_of_equal_and_of_one_rank) {
  onRanks(3, [](Rank& self) {
    for (int round = 0; round < 30; ++round) {
      ncclComm_t same = nullptr, alone = nullptr;
      NCCL(ncclCommSplit(self.comm, 3, 0, &same, nullptr));
      EQUAL(rankOf(same), self.rank);
      NCCL(ncclCommSplit(same, self.rank, 0, &alone, nullptr));
      EQUAL(countOf(alone), 1);
      EQUAL(sum(alone, self.stream, round), round);
      EQUAL(sum(same, self.stream, round), 3 * round);
      NCCL(ncclCommDestroy(alone));
      NCCL(ncclCommDestroy(same));
    }
  });
}

TEST(one_thread_splits_all_ranks_in_a_group) {
  OK(cuInit(0));
  ncclComm_t comms[4] = {}, made[4] = {};
  NCCL(ncclCommInitAll(comms, 4, nullptr));
  NCCL(ncclGroupStart());
  for (int rank = 0; rank < 4; ++rank) NCCL(ncclCommSplit(comms[rank], rank / 2, rank, &made[rank], nullptr));
  NCCL(ncclGroupEnd());
  for (int rank = 0; rank < 4; ++rank) {
    EQUAL(countOf(made[rank]), 2);
    EQUAL(rankOf(made[rank]), rank % 2);
    NCCL(ncclCommDestroy(made[rank]));
    NCCL(ncclCommDestroy(comms[rank]));
  }
}

TEST(a_group_makes_several_of_one_communicator_in_order) {
  OK(cuInit(0));
  ncclComm_t comms[3] = {}, halves[3] = {}, turned[3] = {};
  void* memory[3] = {};
  ncclWindow_t windows[3][2] = {};
  NCCL(ncclCommInitAll(comms, 3, nullptr));
  for (int rank = 0; rank < 3; ++rank) {
    Primary primary(rank);
    NCCL(ncclMemAlloc(&memory[rank], 8192));
  }
  NCCL(ncclGroupStart());
  for (int rank = 0; rank < 3; ++rank) {
    NCCL(ncclCommSplit(comms[rank], rank == 1 ? 1 : 0, 0, &halves[rank], nullptr));
    NCCL(ncclCommSplit(comms[rank], 0, -rank, &turned[rank], nullptr));
    for (int window = 0; window < 2; ++window) {
      NCCL(ncclCommWindowRegister(comms[rank], static_cast<char*>(memory[rank]) + 4096 * window, 4096,
                                  &windows[rank][window], 0));
    }
  }
  int count = 0;
  EQUAL(ncclCommCount(halves[0], &count), ncclInvalidArgument);  // not ready yet
  NCCL(ncclGroupEnd());
  for (int rank = 0; rank < 3; ++rank) {
    EQUAL(countOf(halves[rank]), rank == 1 ? 1 : 2);
    EQUAL(rankOf(turned[rank]), 2 - rank);
    void* there = nullptr;
    NCCL(ncclGetPeerDevicePointer(windows[rank][1], 0, 0, &there));
    CHECK(there == static_cast<char*>(memory[0]) + 4096);
  }
  for (int rank = 0; rank < 3; ++rank) {
    for (auto comm : {halves[rank], turned[rank], comms[rank]}) NCCL(ncclCommDestroy(comm));
    NCCL(ncclMemFree(memory[rank]));
  }
}

TEST(a_failed_group_makes_no_communicator) {
  Primary primary;
  ncclComm_t comm = nullptr, made = nullptr;
  NCCL(ncclCommInitAll(&comm, 1, nullptr));
  NCCL(ncclGroupStart());
  NCCL(ncclCommSplit(comm, 0, 0, &made, nullptr));
  CHECK(made != nullptr);
  EQUAL(ncclCommSplit(comm, -7, 0, &made, nullptr), ncclInvalidArgument);
  EQUAL(ncclGroupEnd(), ncclInvalidArgument);
  CHECK(made == nullptr);
  CUstream stream = check::stream();
  EQUAL(sum(comm, stream, 4), 4);  // the communicator still works
  NCCL(ncclCommDestroy(comm));
}

TEST(wrong_splits_are_refused) {
  ncclComm_t comm = nullptr, made = nullptr;
  Primary primary;
  NCCL(ncclCommInitAll(&comm, 1, nullptr));
  EQUAL(ncclCommSplit(nullptr, 0, 0, &made, nullptr), ncclInvalidArgument);
  EQUAL(ncclCommSplit(comm, 0, 0, nullptr, nullptr), ncclInvalidArgument);
  EQUAL(ncclCommSplit(comm, -2, 0, &made, nullptr), ncclInvalidArgument);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 2;
  EQUAL(ncclCommSplit(comm, 0, 0, &made, &config), ncclInvalidArgument);
  int excluded[] = {0, 0};
  EQUAL(ncclCommShrink(comm, nullptr, 1, &made, nullptr, 0), ncclInvalidArgument);
  EQUAL(ncclCommShrink(comm, excluded, 1, &made, nullptr, 0), ncclInvalidArgument);
  EQUAL(ncclCommShrink(comm, excluded, 0, &made, nullptr, 2), ncclInvalidArgument);
  excluded[0] = 5;
  EQUAL(ncclCommShrink(comm, excluded, 1, &made, nullptr, 0), ncclInvalidArgument);
  NCCL(ncclCommFinalize(comm));
  EQUAL(ncclCommSplit(comm, 0, 0, &made, nullptr), ncclInvalidUsage);
  EQUAL(ncclCommShrink(comm, excluded, 0, &made, nullptr, 0), ncclInvalidUsage);
  NCCL(ncclCommDestroy(comm));
}

TEST(the_configuration_is_checked_member_by_member) {
  Primary primary;
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  const auto refused = [&](auto set, const char* name) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    set(config);
    EQUAL(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    if (strstr(ncclGetLastError(nullptr), name) == nullptr)
      throw check::Failure(std::string(name) + " is not named: " + ncclGetLastError(nullptr));
  };
  refused([](auto& config) { config.blocking = 2; }, "blocking");
  refused([](auto& config) { config.cgaClusterSize = -1; }, "cgaClusterSize");
  refused([](auto& config) { config.minCTAs = 0; }, "minCTAs");
  refused([](auto& config) { config.minCTAs = 9, config.maxCTAs = 8; }, "minCTAs");
  refused([](auto& config) { config.maxCTAs = -3; }, "maxCTAs");
  refused([](auto& config) { config.splitShare = -1; }, "splitShare");
  refused([](auto& config) { config.shrinkShare = 2; }, "shrinkShare");
  refused([](auto& config) { config.collnetEnable = 2; }, "collnetEnable");
  refused([](auto& config) { config.CTAPolicy = 4; }, "CTAPolicy");
  refused([](auto& config) { config.nvlsCTAs = 0; }, "nvlsCTAs");
  refused([](auto& config) { config.nChannelsPerNetPeer = 0; }, "nChannelsPerNetPeer");
  refused([](auto& config) { config.nvlinkCentricSched = 7; }, "nvlinkCentricSched");
  refused([](auto& config) { config.graphUsageMode = 3; }, "graphUsageMode");
  refused([](auto& config) { config.numRmaCtx = 0; }, "numRmaCtx");
  refused([](auto& config) { config.maxP2pPeers = 0; }, "maxP2pPeers");
  refused([](auto& config) { config.graphStreamOrdering = 2; }, "graphStreamOrdering");
  refused([](auto& config) { config.magic = 1; }, "magic");
  refused([](auto& config) { config.size = 8; }, "size");
  // An older structure is shorter. The library must not read beyond its size.
  ncclConfig_t older = NCCL_CONFIG_INITIALIZER;
  older.size = offsetof(ncclConfig_t, trafficClass);
  older.version = 22000;
  older.graphStreamOrdering = 99;
  older.commName = reinterpret_cast<const char*>(1);
  NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &older));
  NCCL(ncclCommDestroy(comm));
}

TEST(several_ids_bring_one_communicator_up) {
  ncclUniqueId ids[3];
  for (auto& id : ids) NCCL(ncclGetUniqueId(&id));
  inThreads(4, [&](Rank& self) {
    NCCL(ncclCommInitRankScalable(&self.comm, 4, self.rank, 3, ids, nullptr));
    EQUAL(sum(self.comm, self.stream, 1), 4);
  });
  Primary primary;
  ncclComm_t comm = nullptr;
  EQUAL(ncclCommInitRankScalable(&comm, 2, 0, 0, ids, nullptr), ncclInvalidArgument);
  EQUAL(ncclCommInitRankScalable(&comm, 2, 0, 3, ids, nullptr), ncclInvalidArgument);
  EQUAL(ncclCommInitRankScalable(&comm, 2, 0, 1, nullptr, nullptr), ncclInvalidArgument);
  memset(&ids[1], 0, sizeof ids[1]);
  EQUAL(ncclCommInitRankScalable(&comm, 2, 0, 2, ids, nullptr), ncclInvalidArgument);
}

TEST(a_communicator_shrinks) {
  onRanks(4, [](Rank& self) {
    int excluded[] = {2, 0};
    for (int round = 0; round < 3 && self.rank % 2 == 1; ++round) {
      ncclComm_t made = nullptr;
      NCCL(ncclCommShrink(self.comm, excluded, 2, &made, nullptr, NCCL_SHRINK_DEFAULT));
      EQUAL(countOf(made), 2);
      EQUAL(rankOf(made), self.rank / 2);
      EQUAL(sum(made, self.stream, self.rank), 4);
      NCCL(ncclCommDestroy(made));
    }
    EQUAL(sum(self.comm, self.stream, 1), 4);
  });
}

TEST(shrinking_can_give_pending_work_up) {
  std::atomic<int> queued{0}, ready{0};
  onRanks(3, [&](Rank& self) {
    if (self.rank == 1) {  // this rank is stuck elsewhere
      for (int attempt = 0; ready != 2 && attempt < 5000; ++attempt) usleep(1000);
      NCCL(ncclCommAbort(self.comm));
      self.comm = nullptr;
      return;
    }
    Buffer buffer(4);
    NCCL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, self.comm, self.stream));
    EQUAL(cuStreamQuery(self.stream), CUDA_ERROR_NOT_READY);
    // Aborting the work of one rank also ends the work of the other, so both must have queued it first.
    ++queued;
    check::waitUntil([&] { return queued == 2; });
    int excluded = 1;
    ncclComm_t made = nullptr;
    NCCL(ncclCommShrink(self.comm, &excluded, 1, &made, nullptr, NCCL_SHRINK_ABORT));
    ++ready;
    OK(cuStreamSynchronize(self.stream));
    EQUAL(sum(made, self.stream, self.rank), 2);
    NCCL(ncclCommDestroy(made));
  });
}

TEST(a_communicator_grows) {
  ncclUniqueId id, later;
  NCCL(ncclGetUniqueId(&id));
  std::atomic<int> made{0};
  inThreads(5, [&](Rank& self) {
    ncclComm_t old = nullptr;
    if (self.rank < 3) {
      NCCL(ncclCommInitRank(&old, 3, id, self.rank));
      if (self.rank == 1) {
        NCCL(ncclCommGetUniqueId(old, &later));
        ncclUniqueId another;
        NCCL(ncclCommGetUniqueId(old, &another));
        EQUAL(ncclCommGrow(old, 2, &later, -1, &self.comm, nullptr), ncclInvalidArgument);
        EQUAL(ncclCommGrow(old, 5, &later, 1, &self.comm, nullptr), ncclInvalidArgument);
        EQUAL(ncclCommGrow(old, 5, &id, -1, &self.comm, nullptr), ncclInvalidArgument);
        made = 1;
      }
      NCCL(ncclCommGrow(old, 5, self.rank == 1 ? &later : nullptr, -1, &self.comm, nullptr));
    } else {
      check::waitUntil([&] { return made != 0; });
      EQUAL(ncclCommGrow(nullptr, 5, nullptr, self.rank, &self.comm, nullptr), ncclInvalidArgument);
      EQUAL(ncclCommGrow(nullptr, 5, &later, -1, &self.comm, nullptr), ncclInvalidArgument);
      EQUAL(ncclCommGrow(nullptr, 5, &later, 5, &self.comm, nullptr), ncclInvalidArgument);
      NCCL(ncclCommGrow(nullptr, 5, &later, self.rank, &self.comm, nullptr));
    }
    EQUAL(countOf(self.comm), 5);
    EQUAL(rankOf(self.comm), self.rank);
    EQUAL(sum(self.comm, self.stream, self.rank), 10);
    if (self.rank == 1) {
      EQUAL(ncclCommGrow(old, 5, &later, -1, &old, nullptr), ncclInvalidArgument);  // the id was used already
      ncclUniqueId another;
      NCCL(ncclCommGetUniqueId(old, &another));
    }
    if (old != nullptr) NCCL(ncclCommDestroy(old));
  });
}

TEST(a_revoked_communicator_still_makes_others) {
  std::atomic<int> queued{0};
  onRanks(3, [&](Rank& self) {
    Buffer buffer(4);
    if (self.rank != 2) {
      NCCL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, self.comm, self.stream));
      ++queued;
    }
    check::waitUntil([&] { return queued == 2; });
    EQUAL(ncclCommRevoke(self.comm, 1), ncclInvalidArgument);
    NCCL(ncclCommRevoke(self.comm, NCCL_REVOKE_DEFAULT));
    OK(cuStreamSynchronize(self.stream));
    EQUAL(settled(self.comm), ncclSuccess);
    EQUAL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, self.comm, self.stream), ncclInvalidUsage);
    EQUAL(ncclCommFinalize(self.comm), ncclInvalidArgument);
    EQUAL(ncclCommRevoke(self.comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
    ncclComm_t made = nullptr;
    NCCL(ncclCommSplit(self.comm, 1, 0, &made, nullptr));
    EQUAL(sum(made, self.stream, 1), 3);
    int excluded = 0;
    if (self.rank != 0) {
      ncclComm_t smaller = nullptr;
      NCCL(ncclCommShrink(self.comm, &excluded, 1, &smaller, nullptr, NCCL_SHRINK_DEFAULT));
      EQUAL(sum(smaller, self.stream, 1), 2);
      NCCL(ncclCommDestroy(smaller));
    }
    NCCL(ncclCommDestroy(made));
  });
}

TEST(a_suspended_communicator_takes_no_work) {
  onRanks(2, [](Rank& self) {
    EQUAL(sum(self.comm, self.stream, 1), 2);
    EQUAL(ncclCommResume(self.comm), ncclInvalidUsage);
    EQUAL(ncclCommSuspend(self.comm, 0), ncclInvalidArgument);
    uint64_t value = 7;
    NCCL(ncclCommMemStats(self.comm, ncclStatGpuMemSuspended, &value));
    EQUAL(value, 0);
    NCCL(ncclCommSuspend(self.comm, NCCL_SUSPEND_MEM));
    NCCL(ncclCommMemStats(self.comm, ncclStatGpuMemSuspended, &value));
    EQUAL(value, 1);
    Buffer buffer(4);
    EQUAL(ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, self.comm, self.stream), ncclInvalidUsage);
    EQUAL(ncclCommSuspend(self.comm, NCCL_SUSPEND_MEM), ncclInvalidUsage);
    EQUAL(ncclCommFinalize(self.comm), ncclInvalidUsage);
    NCCL(ncclCommResume(self.comm));
    EQUAL(sum(self.comm, self.stream, 1), 2);
    uint64_t parts[4];
    for (int stat = 0; stat < 4; ++stat)
      NCCL(ncclCommMemStats(self.comm, static_cast<ncclCommMemStat_t>(stat), &parts[stat]));
    EQUAL(parts[ncclStatGpuMemTotal], parts[ncclStatGpuMemSuspend] + parts[ncclStatGpuMemPersist]);
    EQUAL(ncclCommMemStats(self.comm, static_cast<ncclCommMemStat_t>(4), &value), ncclInvalidArgument);
    EQUAL(ncclCommMemStats(self.comm, ncclStatGpuMemTotal, nullptr), ncclInvalidArgument);
  });
}

TEST(a_communicator_that_does_not_block_is_in_progress_after_each_call) {
  OK(cuInit(0));
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  inThreads(2, [&](Rank& self) {
    ncclConfig_t config = nonBlocking();
    EQUAL(ncclCommInitRankConfig(&self.comm, 2, id, self.rank, &config), ncclInProgress);
    EQUAL(settled(self.comm), ncclSuccess);
    Buffer buffer(4);
    const auto reduce = [&] {
      return ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, self.comm, self.stream);
    };
    EQUAL(reduce(), ncclInProgress);
    EQUAL(settled(self.comm), ncclSuccess);
    NCCL(ncclGroupStart());
    NCCL(reduce());
    NCCL(reduce());
    EQUAL(ncclGroupEnd(), ncclInProgress);
    EQUAL(settled(self.comm), ncclSuccess);
    OK(cuStreamSynchronize(self.stream));
    ncclComm_t made = nullptr, none = reinterpret_cast<ncclComm_t>(1);
    // The call returns ncclSuccess, and the new communicator is ready later.
    EQUAL(ncclCommSplit(self.comm, 0, -self.rank, &made, nullptr), ncclSuccess);
    EQUAL(settled(self.comm), ncclSuccess);
    int value = 0;
    if (self.rank == 0)
      EQUAL(ncclCommCount(made, &value) == ncclSuccess || ncclCommCount(made, &value) == ncclInvalidArgument, true);
    EQUAL(settled(made), ncclSuccess);
    EQUAL(settled(self.comm), ncclSuccess);
    EQUAL(rankOf(made), 1 - self.rank);
    EQUAL(ncclCommSplit(self.comm, NCCL_SPLIT_NOCOLOR, 0, &none, nullptr), ncclSuccess);
    CHECK(none == nullptr);
    EQUAL(settled(self.comm), ncclSuccess);
    EQUAL(ncclCommFinalize(made), ncclInProgress);  // the child is non-blocking, too
    EQUAL(settled(made), ncclSuccess);
    NCCL(ncclCommDestroy(made));
  });
}

TEST(an_initialisation_can_be_aborted) {
  Primary primary;
  for (const int ready : {0, 100000}) {
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    EQUAL(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
    usleep(static_cast<useconds_t>(ready));
    EQUAL(ncclCommDestroy(comm), ncclInvalidArgument);
    NCCL(ncclCommAbort(comm));
    ncclResult_t state = ncclSuccess;
    EQUAL(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
    // The other rank gets the error at once, without a timeout.
    if (ready == 0) continue;
    Primary second(1);
    const auto start = std::chrono::steady_clock::now();
    EQUAL(ncclCommInitRank(&comm, 2, id, 1), ncclRemoteError);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
  }
}

TEST(a_failed_initialisation_of_one_that_does_not_block_is_told_later) {
  Primary primary;
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  ncclConfig_t config = nonBlocking();
  ncclComm_t comms[2] = {};
  // Both ranks use the same device.
  for (int rank = 0; rank < 2; ++rank)
    EQUAL(ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config), ncclInProgress);
  for (auto comm : comms) EQUAL(settled(comm), ncclInvalidUsage);
  int count = 0;
  EQUAL(ncclCommCount(comms[0], &count), ncclInvalidUsage);
  for (auto comm : comms) NCCL(ncclCommAbort(comm));
}

TEST(more_ids_than_a_board_has_room_for) {
  Primary primary;
  // Abandoned entries are reused.
  for (int round = 0; round < 600; ++round) {
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    ncclConfig_t config = nonBlocking();
    ncclComm_t comm = nullptr;
    EQUAL(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
    if (round % 50 == 0) usleep(5000);
    NCCL(ncclCommAbort(comm));
  }
}

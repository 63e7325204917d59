// Injected faults.
#include <chrono>

#include "nccl_ranks.h"
#include "process.h"

using check::Buffer;
using check::Primary;
using check::Rank;

namespace {

const bool isConfigured = [] {
  setenv("SHOAL_SIM_DEVICES", "4", 1);
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "2", 1);
  return true;
}();

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs the ranks and removes the faults afterwards.
template <class Body>
void withFaults(int ranks, Body&& body) {
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  struct Over {
    ~Over() { shoalSimNcclFault(nullptr); }
  } over;
  check::inThreads(ranks, [&](Rank& self) { body(self, id); });
}

ncclResult_t reduce(const Rank& self, const Buffer& buffer) {
  return ncclAllReduce(buffer.at(), buffer.at(), 1, ncclInt32, ncclSum, self.comm, self.stream);
}
ncclResult_t errorOf(ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  NCCL(ncclCommGetAsyncError(comm, &error));
  return error;
}

struct Start {
  ncclUniqueId id;
  int ranks, rank;
  char stage[16];
};

// Does one step and reports its result.
void asRank(process::Peer& parent) {
  const auto start = parent.receive<Start>();
  const std::string stage = start.stage;
  Primary primary(start.rank);
  Rank self = {nullptr, check::stream(), start.rank, start.ranks};
  ncclResult_t result = ncclCommInitRank(&self.comm, start.ranks, start.id, start.rank);
  if (stage != "init") NCCL(result);
  usleep(100000);  // all ranks are ready
  if (stage == "split") {
    ncclComm_t made = nullptr;
    result = ncclCommSplit(self.comm, 0, 0, &made, nullptr);
  } else if (stage == "all-reduce") {
    Buffer buffer(4);
    for (int round = 0; round < 3; ++round) {
      result = reduce(self, buffer);
      OK(cuStreamSynchronize(self.stream));
      if (result == ncclSuccess) result = errorOf(self.comm);
      if (result != ncclSuccess) break;
      parent.send(round);
    }
  } else if (stage == "finalize") {
    result = ncclCommFinalize(self.comm);
    while (result == ncclSuccess) usleep(1000);
  }
  parent.send(static_cast<int>(result));
  if (self.comm != nullptr) NCCL(ncclCommAbort(self.comm));
}

ROLES({"rank", asRank});

}  // namespace

TEST(faults_are_refused_that_are_not_understood) {
  for (const char* text : {"explode", "die:rank", "die:rank=x", "die:call=ncclLunch", "die:call=ncclX*", "slow:ms=-1",
                           "error:call=ncclSend,code=0x2", "error:call=ncclSend,code=0", "error:call=ncclSend,code=7",
                           "error:call=ncclSend,code=9", "die:when=now", "die;explode", "rank=1,die"}) {
    if (shoalSimNcclFault(text) != ncclInvalidArgument) throw check::Failure(std::string(text) + " is taken");
    CHECK(strstr(ncclGetLastError(nullptr), "not understood") != nullptr);
  }
  for (const char* text :
       {"", ";", "die:call=nvshmem_putmem", "error:code=700", "explode call=nvshmem_quiet times=x",
        "die:call=ncclSend,times=2", "slow ms=5 rank=1 ; hang:call=ncclAllReduce", "error:code=8,call=nccl*"}) {
    EQUAL(shoalSimNcclFault(text), ncclSuccess);
  }
  EQUAL(shoalSimNcclFault(nullptr), ncclSuccess);
}

TEST(an_asynchronous_error_is_that_of_its_rank_and_known_to_the_others) {
  NCCL(static_cast<ncclResult_t>(shoalSimNcclFault("error:rank=1,call=ncclAllReduce,after=2,code=2")));
  withFaults(3, [](Rank& self, const ncclUniqueId& id) {
    NCCL(ncclCommInitRank(&self.comm, 3, id, self.rank));
    Buffer buffer(4);
    CHECK(errorOf(self.comm) == ncclSuccess);
    for (int round = 0; round < 3; ++round) {
      const ncclResult_t asked = reduce(self, buffer);
      CHECK(asked == ncclSuccess || (round == 2 && asked == ncclRemoteError));
    }
    OK(cuStreamSynchronize(self.stream));
    EQUAL(errorOf(self.comm), self.rank == 1 ? ncclSystemError : ncclRemoteError);
    CHECK(strstr(ncclGetLastError(self.comm), "rank 1") != nullptr);
    NCCL(ncclCommAbort(self.comm));
    self.comm = nullptr;
  });
}

TEST(a_hanging_rank_is_waited_for_and_can_be_aborted) {
  NCCL(static_cast<ncclResult_t>(shoalSimNcclFault("hang:rank=0,call=ncclBroadcast")));
  withFaults(2, [](Rank& self, const ncclUniqueId& id) {
    NCCL(ncclCommInitRank(&self.comm, 2, id, self.rank));
    Buffer buffer(4);
    NCCL(ncclBroadcast(buffer.at(), buffer.at(), 1, ncclInt32, 1, self.comm, self.stream));
    const auto start = std::chrono::steady_clock::now();
    if (self.rank == 0) {
      usleep(2500000);
      EQUAL(cuStreamQuery(self.stream), CUDA_ERROR_NOT_READY);
    } else {
      OK(cuStreamSynchronize(self.stream));
      CHECK(secondsSince(start) > 1.5);
      EQUAL(errorOf(self.comm), ncclSystemError);  // a timeout
    }
    NCCL(ncclCommAbort(self.comm));
    self.comm = nullptr;
    OK(cuStreamSynchronize(self.stream));
    CHECK(secondsSince(start) < 4);
  });
}

TEST(a_slow_rank_is_late) {
  NCCL(static_cast<ncclResult_t>(
      shoalSimNcclFault("slow:rank=1,call=ncclAll*,after=1,ms=300;slow:rank=0,call=ncclCommInitRank,ms=200")));
  withFaults(2, [](Rank& self, const ncclUniqueId& id) {
    const auto start = std::chrono::steady_clock::now();
    NCCL(ncclCommInitRank(&self.comm, 2, id, self.rank));
    CHECK(self.rank == 1 || secondsSince(start) >= 0.2);
    Buffer buffer(4);
    for (int round = 0; round < 3; ++round) NCCL(reduce(self, buffer));
    check::finish(self);
    CHECK(secondsSince(start) >= 0.55 && secondsSince(start) < 1.5);
  });
}

TEST(a_fault_may_happen_a_number_of_times) {
  NCCL(static_cast<ncclResult_t>(shoalSimNcclFault("slow:call=ncclAllReduce,after=1,times=2,ms=150")));
  withFaults(1, [](Rank& self, const ncclUniqueId& id) {
    NCCL(ncclCommInitRank(&self.comm, 1, id, 0));
    Buffer buffer(4);
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < 6; ++round) NCCL(reduce(self, buffer));
    check::finish(self);
    CHECK(secondsSince(start) >= 0.3 && secondsSince(start) < 0.6);
  });
}

TEST(an_initialisation_can_fail_or_hang) {
  NCCL(static_cast<ncclResult_t>(shoalSimNcclFault("error:rank=0,call=ncclCommInit*,code=1")));
  withFaults(2, [](Rank& self, const ncclUniqueId& id) {
    EQUAL(ncclCommInitRank(&self.comm, 2, id, self.rank), self.rank == 0 ? ncclUnhandledCudaError : ncclRemoteError);
    CHECK(self.comm == nullptr);
  });
  NCCL(static_cast<ncclResult_t>(shoalSimNcclFault("hang:rank=0,call=ncclCommInit*")));
  withFaults(2, [](Rank& self, const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (self.rank == 1) {
      EQUAL(ncclCommInitRank(&self.comm, 2, id, 1), ncclRemoteError);
      CHECK(strstr(ncclGetLastError(nullptr), "rank 0 aborted") != nullptr);
      return;
    }
    EQUAL(ncclCommInitRankConfig(&self.comm, 2, id, 0, &config), ncclInProgress);
    usleep(200000);
    EQUAL(errorOf(self.comm), ncclInProgress);
    NCCL(ncclCommAbort(self.comm));
    self.comm = nullptr;
  });
}

TEST(a_rank_dies_at_every_stage) {
  const std::pair<const char*, const char*> stages[] = {{"init", "ncclCommInitRank"},
                                                        {"split", "ncclCommSplit"},
                                                        {"all-reduce", "ncclAllReduce,after=1"},
                                                        {"finalize", "ncclCommFinalize"}};
  for (auto& [stage, call] : stages) {
    const std::string fault = std::string("die:rank=1,call=") + call;
    setenv("SHOAL_SIM_FAULT", fault.c_str(), 1);
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    std::vector<std::unique_ptr<process::Child>> children;
    const auto begin = std::chrono::steady_clock::now();
    for (int rank = 0; rank < 3; ++rank) {
      children.push_back(std::make_unique<process::Child>("rank"));
      Start start = {id, 3, rank, {}};
      strcpy(start.stage, stage);
      children.back()->send(start);
    }
    unsetenv("SHOAL_SIM_FAULT");
    EQUAL(children[1]->wait(), 1000 + SIGKILL);
    for (const int rank : {0, 2}) {
      process::Child& child = *children[static_cast<size_t>(rank)];
      if (strcmp(stage, "finalize") == 0) {
        child.kill();  // it has finalized, and does not need the other ranks
        continue;
      }
      int result = child.receive<int>();
      // The first round completes, but its status may already report the death.
      if (strcmp(stage, "all-reduce") == 0 && result == 0) result = child.receive<int>();
      EQUAL(result, ncclRemoteError);
      EQUAL(child.wait(), 0);
    }
    CHECK(secondsSince(begin) < 4);
  }
}

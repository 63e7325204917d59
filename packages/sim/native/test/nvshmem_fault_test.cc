// PEs that are killed, hang or are slow, and the errors that the other PEs get.
#include <sys/mman.h>
#include <time.h>

#include <iterator>
#include <thread>

#include "pes.h"

namespace {

struct Order {
  char faults[160];
  int stage;
};

double secondsNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

enum Stage {
  kStart,
  kAllocation,
  kBarrier,
  kTeamBarrier,
  kCollective,
  kStreamCollective,
  kStreamWait,
  kSplit,
  kTeamInit,
  kFinalize,
  kStages
};

bool isNamed(const char* failure, int pe) {
  return failure != nullptr && strstr(failure, ("PE " + std::to_string(pe) + " ended").c_str()) != nullptr;
}

// Runs to a stage at which PE 1 dies. Functions with a status return an error; functions without return. Afterwards the
// job has failed permanently.
void survive(process::Peer& parent) {
  pes::beQuiet();
  auto place = parent.receive<pes::Place>();
  const auto order = parent.receive<Order>();
  EQUAL(shoalSimNvshmemFault(order.faults), 0);
  check::Primary primary(place.pe % 2);
  nvshmemx_init_attr_t attributes = {};
  OK(nvshmemx_set_attr_uniqueid_args(place.pe, place.size, &place.id, &attributes));
  const int started = nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
  if (order.stage == kStart) {
    EQUAL(started, NVSHMEMX_ERROR_INTERNAL);
    EQUAL(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
    nvshmemx_hostlib_finalize();
    return;
  }
  OK(started);
  auto* cells = static_cast<uint64_t*>(order.stage == kAllocation ? nullptr : nvshmem_calloc(16, sizeof(uint64_t)));
  CUstream stream = check::stream();
  nvshmem_team_t team = 99;
  switch (order.stage) {
    case kAllocation: CHECK(nvshmem_calloc(16, sizeof(uint64_t)) == nullptr); break;
    case kBarrier: nvshmem_barrier_all(); break;
    case kTeamBarrier:
      EQUAL(nvshmem_barrier(NVSHMEM_TEAM_WORLD), NVSHMEMX_ERROR_INTERNAL);
      EQUAL(nvshmem_team_sync(NVSHMEM_TEAM_WORLD), NVSHMEMX_ERROR_INTERNAL);
      break;
    case kCollective:
      EQUAL(nvshmem_uint64_sum_reduce(NVSHMEM_TEAM_WORLD, cells, cells, 16), NVSHMEMX_ERROR_INTERNAL);
      break;
    case kStreamCollective:
      OK(nvshmemx_uint64_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, cells, cells, 16, stream));
      EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_EXTERNAL_DEVICE);
      break;
    case kStreamWait:
      nvshmemx_signal_wait_until_on_stream(cells, NVSHMEM_CMP_EQ, 1, stream);
      if (place.pe == 1) nvshmemx_signal_op_on_stream(cells, 1, NVSHMEM_SIGNAL_SET, 0, stream);
      EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_EXTERNAL_DEVICE);
      break;
    case kSplit:
      EQUAL(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &team), NVSHMEMX_ERROR_INTERNAL);
      EQUAL(team, NVSHMEM_TEAM_INVALID);
      break;
    case kTeamInit: {
      nvshmem_team_config_t config = {};
      config.uniqueid = 4711;
      EQUAL(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, place.size, place.pe),
            NVSHMEMX_ERROR_INTERNAL);
      break;
    }
    case kFinalize: break;
  }
  if (order.stage != kFinalize) {
    CHECK(isNamed(shoalSimNvshmemFailure(), 1));
    // No call waits any more.
    nvshmem_barrier_all();
    EQUAL(nvshmem_barrier(NVSHMEM_TEAM_WORLD), NVSHMEMX_ERROR_INTERNAL);
    CHECK(nvshmem_malloc(16) == nullptr);
  }
  nvshmemx_hostlib_finalize();
  CHECK(isNamed(shoalSimNvshmemFailure(), 1));
  EQUAL(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), NVSHMEMX_ERROR_INTERNAL);
}

void pass(process::Peer& parent) {
  const auto place = parent.receive<pes::Place>();
  const auto order = parent.receive<Order>();
  setenv("SHOAL_SIM_FAULT", order.faults, 1);
  check::Primary primary(place.pe % 2);
  nvshmemx_init_attr_t attributes = {};
  nvshmemx_uniqueid_t id = place.id;
  OK(nvshmemx_set_attr_uniqueid_args(place.pe, place.size, &id, &attributes));
  OK(nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
  const double start = secondsNow();
  for (int round = 0; round < 3; ++round) nvshmem_barrier_all();
  if (order.stage == 1) CHECK(secondsNow() - start >= 0.28);
  int* cell = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  const int value = 5;
  nvshmemx_int_put_on_stream(cell, &value, 1, 1 - place.pe, nullptr);
  const CUresult status = cuCtxSynchronize();
  if (order.stage == 2 && place.pe == 1) EQUAL(status, CUDA_ERROR_ILLEGAL_ADDRESS);
  else EQUAL(status, CUDA_SUCCESS);
  if (order.stage == 2 && place.pe == 1) shoalSimInjectError(1, 0);
  nvshmemx_hostlib_finalize();
}

void timeOut(process::Peer& parent) {
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", "0.5", 1);
  pes::beQuiet();
  const auto place = parent.receive<pes::Place>();
  const auto order = parent.receive<Order>();
  setenv("SHOAL_SIM_FAULT", order.faults, 1);
  check::Primary primary(place.pe % 2);
  nvshmemx_init_attr_t attributes = {};
  nvshmemx_uniqueid_t id = place.id;
  OK(nvshmemx_set_attr_uniqueid_args(place.pe, place.size, &id, &attributes));
  const double start = secondsNow();
  const int started = nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
  if (order.stage == kStart) {
    EQUAL(started, NVSHMEMX_ERROR_INTERNAL);
  } else {
    OK(started);
    EQUAL(nvshmem_barrier(NVSHMEM_TEAM_WORLD), NVSHMEMX_ERROR_INTERNAL);
    CHECK(strstr(shoalSimNvshmemFailure(), "nvshmem_barrier") != nullptr);
  }
  const double took = secondsNow() - start;
  CHECK(took >= 0.45 && took < 5);
  nvshmemx_hostlib_finalize();
}

// A process that makes the id but is no PE. Killing it does not affect PEs that have already met.
void makeIdAndWait(process::Peer& parent) {
  nvshmemx_uniqueid_t id = {};
  OK(nvshmemx_get_uniqueid(&id));
  parent.send(id);
  parent.receive<int>();
}

void startTold(process::Peer& parent) {
  pes::beQuiet();
  pes::Running running(parent);
  parent.send(1);
  parent.receive<int>();
  EQUAL(nvshmem_barrier(NVSHMEM_TEAM_WORLD), 0);
}

void refuseFaults(process::Peer&) {
  pes::beQuiet();
  for (const char* wrong :
       {"explode at=nvshmem_quiet", "at=nvshmem_quiet", "die rank=x at=nvshmem_quiet", "die rank=-1 at=nvshmem_quiet",
        "die rank=64 at=nvshmem_quiet", "die at=nvshmem_quiet when=2", "die at=nvshmem_quiet now",
        "error at=nvshmem_quiet code=0", "error at=nvshmem_quiet code=1000",
        "slow at=nvshmem_quiet; die, at=nvshmem_quiet, after="}) {
    EQUAL(shoalSimNvshmemFault(wrong), NVSHMEMX_ERROR_INVALID_VALUE);
  }
  // Faults of other libraries are not checked here.
  OK(shoalSimNvshmemFault("die rank=0 at=all-reduce; explode"));
  for (const char* last :
       {"error at=nvshmem_fence code=1", "error at=nvshmem_fence code=999", "die rank=63 at=nvshmem_fence"})
    OK(shoalSimNvshmemFault(last));
  OK(shoalSimNvshmemFault("die rank=1 at=nvshmem_* after=2 times=0"));
  OK(shoalSimNvshmemFault(""));
  OK(shoalSimNvshmemFault(nullptr));
}

// The first two calls succeed.
void dieLater(process::Peer& parent) {
  pes::Running running(parent);
  OK(shoalSimNvshmemFault("die at=nvshmem_fence after=2"));
  nvshmem_fence();
  nvshmem_fence();
  parent.send(1);
  nvshmem_fence();
}

// A time limit: a text repeated a number of times, and whether it is invalid.
struct Limit {
  char text[16];
  int repeated;
  bool isRefused;
};

// PE 0 waits with this limit for a PE that never comes. Reports the length and the last character of its output.

void waitWithLimit(process::Peer& parent) {
  const auto limit = parent.receive<Limit>();
  const auto id = parent.receive<nvshmemx_uniqueid_t>();
  std::string text;
  for (int times = 0; times < limit.repeated; ++times) text += limit.text;
  setenv("SHOAL_SIM_TIMEOUT_SECONDS", text.c_str(), 1);
  const int printed = memfd_create("printed", 0);
  dup2(printed, STDERR_FILENO);
  check::Primary primary(0);
  std::thread([id]() mutable {
    check::Primary own(0);
    nvshmemx_init_attr_t attributes = {};
    nvshmemx_set_attr_uniqueid_args(0, 2, &id, &attributes);
    nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
  }).detach();
  std::string said;
  for (int times = 0; said.empty() && (limit.isRefused || times < 50); ++times) {
    usleep(10000);
    char part[2048];
    const ssize_t length = pread(printed, part, sizeof part, 0);
    said.assign(part, length < 0 ? 0 : static_cast<size_t>(length));
  }
  parent.send(static_cast<int>(said.size()));
  parent.send(said.empty() ? '-' : said.back());
  _exit(0);
}

Order orderOf(const char* faults, int stage) {
  Order order = {};
  snprintf(order.faults, sizeof order.faults, "%s", faults);
  order.stage = stage;
  return order;
}

void dies(const char* faults, int stage, int size) {
  pes::Job job("survive", size);
  for (int pe = 0; pe < size; ++pe) job[pe].send(orderOf(faults, stage));
  const double start = secondsNow();
  for (int pe = 0; pe < size; ++pe) EQUAL(job[pe].wait(), pe == 1 ? 1000 + SIGKILL : 0);
  CHECK(secondsNow() - start < 5);
}

}  // namespace

ROLES({"survive", survive}, {"pass", pass}, {"time out", timeOut}, {"wait with limit", waitWithLimit},
      {"make id and wait", makeIdAndWait}, {"start told", startTold}, {"refuse faults", refuseFaults},
      {"die later", dieLater});

TEST(a_killed_pe_is_noticed_at_every_stage) {
  const char* faults[kStages] = {"die rank=1 at=nvshmemx_hostlib_init_attr",
                                 "die rank=1 at=nvshmem_calloc",
                                 "die rank=1 at=nvshmem_barrier_all",
                                 "die rank=1 at=nvshmem_barrier*",
                                 "die rank=1 at=nvshmem_uint64_sum_reduce",
                                 "die rank=1 at=nvshmemx_uint64_sum_reduce_on_stream",
                                 "die rank=1 at=nvshmemx_signal_wait_until_on_stream",
                                 "die rank=1 at=nvshmem_team_split_strided",
                                 "die rank=1 at=nvshmemx_team_init",
                                 "die rank=1 at=nvshmemx_hostlib_finalize"};
  for (int stage = 0; stage < kStages; ++stage) {
    try {
      dies(faults[stage], stage, 3);
    } catch (const check::Failure& failure) {
      throw check::Failure("stage " + std::to_string(stage) + ": " + failure.text);
    }
  }
}

TEST(a_slow_pe_is_waited_for) {
  pes::Job job("pass", 2);
  for (int pe = 0; pe < 2; ++pe)
    job[pe].send(orderOf("slow rank=1 at=nvshmem_barrier_all times=0, ms=100; slow rank=1 at=all-reduce ms=60000", 1));
  job.succeed();
}

TEST(an_error_of_the_device_comes_when_it_is_asked_for) {
  pes::Job job("pass", 2);
  for (int pe = 0; pe < 2; ++pe) job[pe].send(orderOf("error rank=1 at=nvshmemx_int_put_on_stream code=700", 2));
  job.succeed();
}

TEST(a_hanging_pe_is_not_waited_for_for_ever) {
  for (const int stage : {static_cast<int>(kStart), static_cast<int>(kTeamBarrier)}) {
    pes::Job job("time out", 2);
    const char* faults =
        stage == kStart ? "hang rank=1 at=nvshmemx_hostlib_init_attr" : "hang rank=1 at=nvshmem_barrier";
    for (int pe = 0; pe < 2; ++pe) job[pe].send(orderOf(faults, stage));
    EQUAL(job[0].wait(), 0);
    job[1].kill();
  }
}

TEST(a_pe_that_never_comes_is_not_waited_for_for_ever) {
  nvshmemx_uniqueid_t id = {};
  OK(nvshmemx_get_uniqueid(&id));
  process::Child child("time out");
  child.send(pes::Place{id, 0, 2});
  child.send(orderOf("", kStart));
  EQUAL(child.wait(), 0);
}

TEST(a_limit_that_is_none_is_told_in_one_line) {
  const int words = static_cast<int>(
      strlen("NVSHMEM on the software device: SHOAL_SIM_TIMEOUT_SECONDS= is not a number of seconds; 60 is used\n"));
  for (const auto& [limit, length] : {std::pair{Limit{"0", 1, false}, 0},
                                      {Limit{"1e9", 1, false}, 0},
                                      {Limit{"1000000001", 1, true}, words + 10},
                                      {Limit{"-1", 1, true}, words + 2},
                                      {Limit{"5 s", 1, true}, words + 3},
                                      {Limit{"minute ", 200, true}, 1023}}) {
    nvshmemx_uniqueid_t id = {};
    OK(nvshmemx_get_uniqueid(&id));
    process::Child child("wait with limit");
    child.send(limit);
    child.send(id);
    EQUAL(child.receive<int>(), length);
    EQUAL(child.receive<char>(), length == 0 ? '-' : '\n');
    EQUAL(child.wait(), 0);
  }
}

TEST(who_made_the_id_may_end_when_all_have_met) {
  process::Child maker("make id and wait");
  const auto id = maker.receive<nvshmemx_uniqueid_t>();
  process::Child first("start told"), second("start told");
  first.send(pes::Place{id, 0, 2});
  second.send(pes::Place{id, 1, 2});
  first.receive<int>();
  second.receive<int>();
  maker.kill();
  first.send(1);
  second.send(1);
  EQUAL(first.wait(), 0);
  EQUAL(second.wait(), 0);
}

TEST(wrong_faults_are_refused) {
  process::Child child("refuse faults");
  EQUAL(child.wait(), 0);
}

TEST(a_fault_may_let_some_pass) {
  pes::Job job("die later", 1);
  EQUAL(job[0].receive<int>(), 1);
  EQUAL(job[0].wait(), 1000 + SIGKILL);
}

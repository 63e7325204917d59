// How NCCL 2.30 answers in the corners of what makes communicators from others, of windows, one-sided operations and
// the host side of the device API: one `group.name = code` a line. Two GPUs, two threads where ranks wait for each
// other.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "groups.h"
#include "shoal/nccl.h"

namespace {

using record::say;

constexpr size_t kBytes = 4 << 20;

// Two ranks, each with a thread that does what both have to do at the same time.
struct Pair {
  ncclComm_t comm[2] = {};
  CUcontext context[2] = {};
  CUstream stream[2] = {};
  void* memory[2] = {};

  explicit Pair(bool isBlocking = true) {
    cuInit(0);
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    for (int rank = 0; rank < 2; ++rank) {
      cuDevicePrimaryCtxRetain(&context[rank], rank);
      cuCtxSetCurrent(context[rank]);
      cuStreamCreate(&stream[rank], 1);
    }
    both([&](int rank) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = isBlocking ? 1 : 0;
      ncclCommInitRankConfig(&comm[rank], 2, id, rank, &config);
      settle(comm[rank]);
      ncclMemAlloc(&memory[rank], kBytes);
      return ncclSuccess;
    });
    cuCtxSetCurrent(context[0]);
  }
  static ncclResult_t settle(ncclComm_t of) {
    ncclResult_t state = ncclSuccess;
    do {
      if (const ncclResult_t result = ncclCommGetAsyncError(of, &state)) return result;
      if (state == ncclInProgress) usleep(1000);
    } while (state == ncclInProgress);
    return state;
  }
  std::pair<ncclResult_t, ncclResult_t> both(const std::function<ncclResult_t(int rank)>& body) {
    ncclResult_t results[2] = {};
    std::thread other([&] {
      cuCtxSetCurrent(context[1]);
      results[1] = body(1);
    });
    cuCtxSetCurrent(context[0]);
    results[0] = body(0);
    other.join();
    return {results[0], results[1]};
  }
  // Says how both ended.
  void ask(const std::string& name, const std::function<ncclResult_t(int rank)>& body) {
    const auto [first, second] = both(body);
    say(name + " by 0", first);
    say(name + " by 1", second);
  }
  ncclResult_t reduce(int rank) {
    return ncclAllReduce(memory[rank], memory[rank], 4, ncclFloat32, ncclSum, comm[rank], stream[rank]);
  }
  // The first collective of a real NCCL waits for the other rank on the host: after this one, later ones do not.
  void meet() {
    both([&](int rank) {
      const ncclResult_t result = reduce(rank);
      return result == ncclSuccess ? wait(rank) : result;
    });
  }
  ncclResult_t wait(int rank) { return static_cast<ncclResult_t>(cuStreamSynchronize(stream[rank])); }
};

// It may hang, or crash a real NCCL.
void runGroup(const std::string& name, const std::function<void()>& body) { record::runGroup(name, body, 6); }

void alone(const std::string& name, const std::function<ncclResult_t()>& call) {
  runGroup("alone " + name, [&] { say("result", call()); });
}

void splits() {
  Pair pair;
  ncclComm_t made[2] = {};
  say("newcomm NULL", ncclCommSplit(pair.comm[0], 0, 0, nullptr, nullptr));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 7;
  say("bad config", ncclCommSplit(pair.comm[0], 0, 0, &made[0], &config));
  pair.ask("same color", [&](int rank) { return ncclCommSplit(pair.comm[rank], 3, -rank, &made[rank], nullptr); });
  int rank = -1;
  say("rank of 0", ncclCommUserRank(made[0], &rank));
  say("rank of 0 value", rank);
  pair.ask("no color", [&](int which) {
    return ncclCommSplit(pair.comm[which], which == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0, &made[which], nullptr);
  });
  say("no color is NULL", made[1] == nullptr);
  pair.ask("negative color", [&](int which) { return ncclCommSplit(pair.comm[which], -5, 0, &made[which], nullptr); });
  pair.ask("config of one", [&](int which) {
    ncclConfig_t own = NCCL_CONFIG_INITIALIZER;
    return ncclCommSplit(pair.comm[which], 0, 0, &made[which], which == 0 ? &own : nullptr);
  });
}

void shrinks() {
  Pair pair;
  ncclComm_t made = nullptr;
  int list[] = {1, 1};
  say("newcomm NULL", ncclCommShrink(pair.comm[0], list, 1, nullptr, nullptr, 0));
  say("bad flags", ncclCommShrink(pair.comm[0], list, 1, &made, nullptr, 2));
  say("without the other", ncclCommShrink(pair.comm[0], list, 1, &made, nullptr, NCCL_SHRINK_DEFAULT));
  int count = -1;
  say("count", ncclCommCount(made, &count));
  say("count value", count);
  say("again", ncclCommShrink(pair.comm[0], list, 1, &made, nullptr, NCCL_SHRINK_DEFAULT));
  say("twice in the list", ncclCommShrink(pair.comm[0], list, 2, &made, nullptr, NCCL_SHRINK_DEFAULT));
}

void grows() {
  Pair pair;
  ncclUniqueId id, other;
  ncclComm_t made = nullptr;
  say("id NULL", ncclCommGetUniqueId(pair.comm[0], nullptr));
  say("id", ncclCommGetUniqueId(pair.comm[0], &id));
  say("id again", ncclCommGetUniqueId(pair.comm[0], &other));
  say("rank of one that is there", ncclCommGrow(pair.comm[0], 3, &id, 0, &made, nullptr));
  say("fewer ranks", ncclCommGrow(pair.comm[0], 1, &id, -1, &made, nullptr));
  say("no ranks", ncclCommGrow(pair.comm[0], 0, &id, -1, &made, nullptr));
  say("new without id", ncclCommGrow(nullptr, 3, nullptr, 2, &made, nullptr));
  say("new without rank", ncclCommGrow(nullptr, 3, &id, -1, &made, nullptr));
  say("new rank beyond", ncclCommGrow(nullptr, 3, &id, 3, &made, nullptr));
  say("newcomm NULL", ncclCommGrow(pair.comm[0], 3, &id, -1, nullptr, nullptr));
}

void revoked() {
  Pair pair;
  pair.meet();
  say("bad flags", ncclCommRevoke(pair.comm[0], 1));
  pair.reduce(0);
  pair.ask("revoke", [&](int rank) { return ncclCommRevoke(pair.comm[rank], 0); });
  pair.ask("settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  pair.ask("stream", [&](int rank) { return pair.wait(rank); });
  int number = -1;
  say("reduce", pair.reduce(0));
  say("count", ncclCommCount(pair.comm[0], &number));
  say("finalize", ncclCommFinalize(pair.comm[0]));
  say("again", ncclCommRevoke(pair.comm[0], 0));
  ncclComm_t made[2] = {};
  pair.ask("split", [&](int rank) { return ncclCommSplit(pair.comm[rank], 0, 0, &made[rank], nullptr); });
  pair.ask("destroy", [&](int rank) { return ncclCommDestroy(pair.comm[rank]); });
}

void suspended() {
  Pair pair;
  pair.meet();
  uint64_t value = 0;
  say("stats", ncclCommMemStats(pair.comm[0], ncclStatGpuMemTotal, &value));
  say("stats NULL", ncclCommMemStats(pair.comm[0], ncclStatGpuMemTotal, nullptr));
  say("stats 9", ncclCommMemStats(pair.comm[0], static_cast<ncclCommMemStat_t>(9), &value));
  say("resume first", ncclCommResume(pair.comm[0]));
  say("flags 0", ncclCommSuspend(pair.comm[0], 0));
  say("flags 2", ncclCommSuspend(pair.comm[0], 2));
  pair.ask("suspend", [&](int rank) { return ncclCommSuspend(pair.comm[rank], NCCL_SUSPEND_MEM); });
  say("stats meanwhile", ncclCommMemStats(pair.comm[0], ncclStatGpuMemSuspended, &value));
  say("stats meanwhile value", static_cast<long long>(value));
  say("again", ncclCommSuspend(pair.comm[0], NCCL_SUSPEND_MEM));
  pair.ask("resume", [&](int rank) { return ncclCommResume(pair.comm[rank]); });
  pair.ask("reduce after", [&](int rank) { return pair.reduce(rank); });
  pair.ask("stream after", [&](int rank) { return pair.wait(rank); });
}

void nonBlocking() {
  Pair pair(false);
  pair.ask("reduce", [&](int rank) { return pair.reduce(rank); });
  pair.ask("settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  pair.ask("stream", [&](int rank) { return pair.wait(rank); });
  ncclComm_t made[2] = {};
  pair.ask("split", [&](int rank) { return ncclCommSplit(pair.comm[rank], 0, 0, &made[rank], nullptr); });
  pair.ask("parent settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  say("split is there", made[0] != nullptr);
  pair.ask("split settled", [&](int rank) { return Pair::settle(made[rank]); });
  pair.ask("finalize", [&](int rank) { return ncclCommFinalize(made[rank]); });
  pair.ask("finalize settled", [&](int rank) { return Pair::settle(made[rank]); });
  pair.ask("destroy", [&](int rank) { return ncclCommDestroy(made[rank]); });
  ncclWindow_t windows[2] = {};
  pair.ask("window", [&](int rank) {
    return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &windows[rank], 1);
  });
  pair.ask("window settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  say("window is there", windows[0] != nullptr);
  pair.ask("deregister", [&](int rank) { return ncclCommWindowDeregister(pair.comm[rank], windows[rank]); });
  pair.ask("deregister settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  ncclDevComm_t device[2] = {};
  pair.ask("device communicator", [&](int rank) {
    ncclDevCommRequirements_t need = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    need.lsaBarrierCount = 2;
    return ncclDevCommCreate(pair.comm[rank], &need, &device[rank]);
  });
  pair.ask("device communicator settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  say("device communicator has a window", device[0].resourceWindow != nullptr);
  pair.ask("device communicator destroy", [&](int rank) { return ncclDevCommDestroy(pair.comm[rank], &device[rank]); });
}

void nonBlockingShrink() {
  Pair pair(false);
  pair.ask("reduce", [&](int rank) { return pair.reduce(rank); });
  pair.ask("settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  int list[] = {1};
  ncclComm_t made = nullptr;
  say("shrink", ncclCommShrink(pair.comm[0], list, 1, &made, nullptr, 0));
  say("parent settled", Pair::settle(pair.comm[0]));
  say("shrink is there", made != nullptr);
  say("shrink settled", Pair::settle(made));
}

void nonBlockingGrow() {
  Pair pair(false);
  pair.ask("reduce", [&](int rank) { return pair.reduce(rank); });
  pair.ask("settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  ncclUniqueId id;
  say("id", ncclCommGetUniqueId(pair.comm[0], &id));
  ncclComm_t made[2] = {};
  pair.ask("grow by nobody", [&](int rank) {
    return ncclCommGrow(pair.comm[rank], 2, rank == 0 ? &id : nullptr, -1, &made[rank], nullptr);
  });
  pair.ask("parent settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
}

void nonBlockingLifecycle() {
  Pair pair(false);
  pair.ask("reduce", [&](int rank) { return pair.reduce(rank); });
  pair.ask("settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  pair.ask("suspend", [&](int rank) { return ncclCommSuspend(pair.comm[rank], NCCL_SUSPEND_MEM); });
  pair.ask("suspend settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  pair.ask("resume", [&](int rank) { return ncclCommResume(pair.comm[rank]); });
  pair.ask("resume settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
  pair.ask("revoke", [&](int rank) { return ncclCommRevoke(pair.comm[rank], 0); });
  pair.ask("revoke settled", [&](int rank) { return Pair::settle(pair.comm[rank]); });
}

void inProgress() {
  cuInit(0);
  CUcontext context = nullptr;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr, made = nullptr;
  int number = 0;
  say("init", ncclCommInitRankConfig(&comm, 2, id, 0, &config));
  say("has a handle", comm != nullptr);
  say("count", ncclCommCount(comm, &number));
  say("split", ncclCommSplit(comm, 0, 0, &made, nullptr));
  say("finalize", ncclCommFinalize(comm));
  say("abort", ncclCommAbort(comm));
}

void windows() {
  Pair pair;
  ncclWindow_t made[2] = {};
  void* out = nullptr;
  const auto one = [&](void* buffer, size_t bytes, int flags) {
    return ncclCommWindowRegister(pair.comm[0], buffer, bytes, &made[0], flags);
  };
  say("buff NULL", one(nullptr, 4096, 1));
  say("size 0", one(pair.memory[0], 0, 1));
  pair.ask("symmetric", [&](int rank) {
    return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &made[rank], 1);
  });
  say("symmetric is there", made[0] != nullptr);
  say("user pointer", ncclWinGetUserPtr(pair.comm[0], made[0], &out));
  say("user pointer is right", out == pair.memory[0]);
  say("user pointer NULL", ncclWinGetUserPtr(pair.comm[0], made[0], nullptr));
  for (const int peer : {0, 1, 2, -1}) {
    say("lsa " + std::to_string(peer), ncclGetLsaDevicePointer(made[0], 0, peer, &out));
    say("peer " + std::to_string(peer), ncclGetPeerDevicePointer(made[0], 0, peer, &out));
  }
  say("lsa at the end", ncclGetLsaDevicePointer(made[0], kBytes, 0, &out));
  say("lsa out NULL", ncclGetLsaDevicePointer(made[0], 0, 0, nullptr));
  pair.ask("deregister", [&](int rank) { return ncclCommWindowDeregister(pair.comm[rank], made[rank]); });
  say("deregister NULL", ncclCommWindowDeregister(pair.comm[0], nullptr));
  pair.ask("default", [&](int rank) {
    return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &made[rank], 0);
  });
  say("default is there", made[0] != nullptr);
  CUdeviceptr plain[2] = {};
  pair.ask("plain memory", [&](int rank) {
    cuMemAlloc_v2(&plain[rank], kBytes);
    return ncclCommWindowRegister(pair.comm[rank], reinterpret_cast<void*>(plain[rank]), kBytes, &made[rank], 1);
  });
  say("plain memory is there", made[0] != nullptr);
}

void oneSided() {
  Pair pair;
  ncclWindow_t window[2] = {};
  pair.both(
      [&](int rank) { return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &window[rank], 1); });
  const auto put = [&](const void* from, size_t count, int type, int peer, ncclWindow_t to, size_t offset, int sigIdx,
                       int ctx, unsigned flags) {
    return ncclPutSignal(from, count, static_cast<ncclDataType_t>(type), peer, to, offset, sigIdx, ctx, flags,
                         pair.comm[0], pair.stream[0]);
  };
  void* memory = pair.memory[0];
  CUdeviceptr outside = 0;
  cuMemAlloc_v2(&outside, 4096);
  say("localbuff NULL", put(nullptr, 4, ncclInt32, 1, window[0], 0, 0, 0, 0));
  say("localbuff outside", put(reinterpret_cast<void*>(outside), 4, ncclInt32, 1, window[0], 0, 0, 0, 0));
  say("peerWin NULL", put(memory, 4, ncclInt32, 1, nullptr, 0, 0, 0, 0));
  say("peer 2", put(memory, 4, ncclInt32, 2, window[0], 0, 0, 0, 0));
  say("type 12", put(memory, 4, 12, 1, window[0], 0, 0, 0, 0));
  say("sigIdx 1", put(memory, 4, ncclInt32, 1, window[0], 0, 1, 0, 0));
  say("ctx 1", put(memory, 4, ncclInt32, 1, window[0], 0, 0, 1, 0));
  say("flags 1", put(memory, 4, ncclInt32, 1, window[0], 0, 0, 0, 1));
  say("signal peer 2", ncclSignal(2, 0, 0, 0, pair.comm[0], pair.stream[0]));
  ncclWaitSignalDesc_t wait = {0, 1, 0, 0};
  say("wait for 0", ncclWaitSignal(1, &wait, pair.comm[0], pair.stream[0]));
  wait.opCnt = -1;
  say("wait for -1", ncclWaitSignal(1, &wait, pair.comm[0], pair.stream[0]));
  wait = {1, 1, 1, 0};
  say("wait sigIdx 1", ncclWaitSignal(1, &wait, pair.comm[0], pair.stream[0]));
  say("wait NULL", ncclWaitSignal(1, nullptr, pair.comm[0], pair.stream[0]));
  pair.ask("put and wait", [&](int rank) {
    ncclResult_t result = ncclPutSignal(pair.memory[rank], 4, ncclInt32, 1 - rank, window[rank], 4096, 0, 0, 0,
                                        pair.comm[rank], pair.stream[rank]);
    ncclWaitSignalDesc_t own = {1, 1 - rank, 0, 0};
    if (result == ncclSuccess) result = ncclWaitSignal(1, &own, pair.comm[rank], pair.stream[rank]);
    return result;
  });
  pair.ask("stream", [&](int rank) { return pair.wait(rank); });
}

void oneSidedToItself() {
  Pair pair;
  ncclWindow_t window[2] = {};
  pair.both(
      [&](int rank) { return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &window[rank], 1); });
  say("put", ncclPutSignal(pair.memory[0], 4, ncclInt32, 0, window[0], 4096, 0, 0, 0, pair.comm[0], pair.stream[0]));
  ncclWaitSignalDesc_t wait = {1, 0, 0, 0};
  say("wait", ncclWaitSignal(1, &wait, pair.comm[0], pair.stream[0]));
  say("stream", pair.wait(0));
}

void device() {
  Pair pair;
  ncclCommProperties_t properties = {};
  say("properties not initialized", ncclCommQueryProperties(pair.comm[0], &properties));
  properties = NCCL_COMM_PROPERTIES_INITIALIZER;
  say("properties", ncclCommQueryProperties(pair.comm[0], &properties));
  say("nLsaTeams", properties.nLsaTeams);
  say("deviceApiSupport", properties.deviceApiSupport);
  say("hostRmaSupport", properties.hostRmaSupport);
  const ncclTeam_t lsa = ncclTeamLsa(pair.comm[0]), rail = ncclTeamRail(pair.comm[0]);
  say("lsa ranks", lsa.nRanks);
  say("lsa stride", lsa.stride);
  say("rail ranks", rail.nRanks);
  say("rail stride", rail.stride);
  ncclDevComm_t made[2] = {};
  ncclDevCommRequirements_t bad = {};
  say("requirements not initialized", ncclDevCommCreate(pair.comm[0], &bad, &made[0]));
  say("requirements NULL", ncclDevCommCreate(pair.comm[0], nullptr, &made[0]));
  ncclLsaBarrierHandle_t handles[2] = {};
  pair.ask("create", [&](int rank) {
    ncclDevCommRequirements_t need = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevResourceRequirements_t list = {};
    ncclLsaBarrierCreateRequirement(ncclTeamLsa(pair.comm[rank]), 4, &handles[rank], &list);
    need.resourceRequirementsList = &list;
    need.lsaBarrierCount = 2;
    return ncclDevCommCreate(pair.comm[rank], &need, &made[rank]);
  });
  say("lsaSize", made[0].lsaSize);
  say("lsaBarrier.nBarriers", made[0].lsaBarrier.nBarriers);
  say("has a window", made[0].resourceWindow != nullptr);
  say("nRanks_rcp32", made[0].nRanks_rcp32);
  say("same handles", handles[0].bufHandle == handles[1].bufHandle);
  pair.ask("destroy", [&](int rank) { return ncclDevCommDestroy(pair.comm[rank], &made[rank]); });
}

void simulated() {
  Pair pair;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ncclGroupStart();
  say("reduce 0", pair.reduce(0));
  say("reduce 1", pair.reduce(1));
  say("end", ncclGroupSimulateEnd(&info));
  say("has an estimate", info.estimatedTime > 0);
  say("stream", pair.wait(0));
}

}  // namespace

int main() {
  runGroup("split", splits);
  runGroup("shrink", shrinks);
  runGroup("grow", grows);
  runGroup("revoke", revoked);
  runGroup("suspend", suspended);
  runGroup("not blocking", nonBlocking);
  runGroup("not blocking shrink", nonBlockingShrink);
  runGroup("not blocking grow", nonBlockingGrow);
  runGroup("not blocking life", nonBlockingLifecycle);
  runGroup("in progress", inProgress);
  runGroup("windows", windows);
  runGroup("one-sided", oneSided);
  runGroup("one-sided to itself", oneSidedToItself);
  runGroup("device", device);
  runGroup("simulated", simulated);
  alone("shrink without a list", [] {
    Pair pair;
    ncclComm_t made = nullptr;
    return ncclCommShrink(pair.comm[0], nullptr, 1, &made, nullptr, 0);
  });
  alone("shrink of nobody", [] {
    Pair pair;
    ncclComm_t made[2] = {};
    int list[] = {0};
    return pair.both([&](int rank) { return ncclCommShrink(pair.comm[rank], list, 0, &made[rank], nullptr, 0); }).first;
  });
  alone("shrink without itself", [] {
    Pair pair;
    ncclComm_t made = nullptr;
    int list[] = {0};
    return ncclCommShrink(pair.comm[0], list, 1, &made, nullptr, 0);
  });
  alone("shrink by a rank beyond", [] {
    Pair pair;
    ncclComm_t made = nullptr;
    int list[] = {7};
    return ncclCommShrink(pair.comm[0], list, 1, &made, nullptr, 0);
  });
  alone("reduce while suspended", [] {
    Pair pair;
    pair.meet();
    pair.both([&](int rank) { return ncclCommSuspend(pair.comm[rank], NCCL_SUSPEND_MEM); });
    return pair.both([&](int rank) { return pair.reduce(rank); }).first;
  });
  alone("stream of a reduce while suspended", [] {
    Pair pair;
    pair.meet();
    pair.both([&](int rank) { return ncclCommSuspend(pair.comm[rank], NCCL_SUSPEND_MEM); });
    pair.both([&](int rank) { return pair.reduce(rank); });
    return pair.both([&](int rank) { return pair.wait(rank); }).first;
  });
  alone("suspend by one", [] {
    Pair pair;
    pair.meet();
    return ncclCommSuspend(pair.comm[0], NCCL_SUSPEND_MEM);
  });
  alone("window not aligned", [] {
    Pair pair;
    ncclWindow_t made[2] = {};
    return pair
        .both([&](int rank) {
          return ncclCommWindowRegister(pair.comm[rank], static_cast<char*>(pair.memory[rank]) + 256, 4096, &made[rank],
                                        1);
        })
        .first;
  });
  alone("window win NULL", [] {
    Pair pair;
    return pair
        .both([&](int rank) { return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, nullptr, 1); })
        .first;
  });
  // What connects the ranks on its first use waits for both on the host.
  alone("wait for nothing", [] {
    Pair pair;
    ncclWaitSignalDesc_t wait = {1, 1, 0, 0};
    return ncclWaitSignal(0, &wait, pair.comm[0], pair.stream[0]);
  });
  alone("wait peer 2", [] {
    Pair pair;
    ncclWaitSignalDesc_t wait = {1, 2, 0, 0};
    return ncclWaitSignal(1, &wait, pair.comm[0], pair.stream[0]);
  });
  alone("put to itself by both", [] {
    Pair pair;
    ncclWindow_t window[2] = {};
    pair.both(
        [&](int rank) { return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &window[rank], 1); });
    return pair
        .both([&](int rank) {
          ncclResult_t result = ncclPutSignal(pair.memory[rank], 4, ncclInt32, rank, window[rank], 4096, 0, 0, 0,
                                              pair.comm[rank], pair.stream[rank]);
          ncclWaitSignalDesc_t own = {1, rank, 0, 0};
          if (result == ncclSuccess) result = ncclWaitSignal(1, &own, pair.comm[rank], pair.stream[rank]);
          return result == ncclSuccess ? pair.wait(rank) : result;
        })
        .first;
  });
  alone("sizes differ", [] {
    Pair pair;
    ncclWindow_t made[2] = {};
    return pair
        .both([&](int rank) {
          return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes >> rank, &made[rank], 1);
        })
        .first;
  });
  alone("flags differ", [] {
    Pair pair;
    ncclWindow_t made[2] = {};
    return pair
        .both([&](int rank) {
          return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &made[rank], rank);
        })
        .first;
  });
  alone("window of no such flag", [] {
    Pair pair;
    ncclWindow_t made[2] = {};
    return pair
        .both([&](int rank) {
          return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &made[rank], 16);
        })
        .first;
  });
  alone("put beyond the window", [] {
    Pair pair;
    ncclWindow_t made[2] = {};
    pair.both(
        [&](int rank) { return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &made[rank], 1); });
    return pair
        .both([&](int rank) {
          return ncclPutSignal(pair.memory[rank], 4, ncclInt32, 1 - rank, made[rank], kBytes - 8, 0, 0, 0,
                               pair.comm[rank], pair.stream[rank]);
        })
        .first;
  });
  alone("deregister twice", [] {
    Pair pair;
    ncclWindow_t made[2] = {};
    pair.both(
        [&](int rank) { return ncclCommWindowRegister(pair.comm[rank], pair.memory[rank], kBytes, &made[rank], 1); });
    pair.both([&](int rank) { return ncclCommWindowDeregister(pair.comm[rank], made[rank]); });
    return ncclCommWindowDeregister(pair.comm[0], made[0]);
  });
  return 0;
}

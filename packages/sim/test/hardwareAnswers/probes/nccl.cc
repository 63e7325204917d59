// The same for NCCL: how it answers in the corners, one `group.name = code` a line.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "groups.h"
#include "shoal/nccl.h"

namespace {

using record::runGroup;
using record::say;

struct Pair {
  ncclComm_t comm[2] = {};
  CUcontext context[2] = {};
  CUstream stream[2] = {};
  CUdeviceptr send[2] = {}, recv[2] = {};
  static constexpr size_t bytes = 4096;

  explicit Pair(bool withComms = true) {
    cuInit(0);
    for (int device = 0; device < 2; ++device) {
      cuDevicePrimaryCtxRetain(&context[device], device);
      cuCtxSetCurrent(context[device]);
      cuStreamCreate(&stream[device], 1);
      cuMemAlloc_v2(&send[device], bytes);
      cuMemAlloc_v2(&recv[device], bytes);
    }
    if (withComms) say("ncclCommInitAll", ncclCommInitAll(comm, 2, nullptr));
    cuCtxSetCurrent(context[0]);
  }
  ncclResult_t reduce(int rank, size_t count, int type = ncclFloat32, int op = ncclSum) {
    return ncclAllReduce(reinterpret_cast<void*>(send[rank]), reinterpret_cast<void*>(recv[rank]), count,
                         static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), comm[rank], stream[rank]);
  }
  void wait() {
    for (int device = 0; device < 2; ++device) {
      cuCtxSetCurrent(context[device]);
      cuStreamSynchronize(stream[device]);
    }
    cuCtxSetCurrent(context[0]);
  }
};

void withoutDevices() {
  int version = 0;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  say("ncclGetVersion(NULL)", ncclGetVersion(nullptr));
  say("ncclGetVersion", ncclGetVersion(&version));
  say("ncclGetUniqueId(NULL)", ncclGetUniqueId(nullptr));
  say("ncclGetUniqueId", ncclGetUniqueId(&id));
  say("ncclGroupEnd without start", ncclGroupEnd());
  say("ncclGroupStart", ncclGroupStart());
  say("ncclGroupEnd", ncclGroupEnd());
  say("ncclCommDestroy(NULL)", ncclCommDestroy(nullptr));
  say("ncclCommAbort(NULL)", ncclCommAbort(nullptr));
  say("ncclCommFinalize(NULL)", ncclCommFinalize(nullptr));
  say("ncclCommCount(NULL)", ncclCommCount(nullptr, &version));
  say("ncclCommGetAsyncError(NULL)", ncclCommGetAsyncError(nullptr, nullptr));
  say("ncclAllReduce(NULL comm)", ncclAllReduce(nullptr, nullptr, 1, ncclFloat32, ncclSum, nullptr, nullptr));
  say("ncclMemFree(NULL)", ncclMemFree(nullptr));
  (void)comm;
}

void initialisation() {
  Pair pair(false);
  ncclComm_t comm[8] = {};
  ncclUniqueId id;
  int same[] = {0, 0}, absent[] = {0, 99}, count = 0;
  cuDeviceGetCount(&count);
  say("InitAll NULL", ncclCommInitAll(nullptr, 2, nullptr));
  say("InitAll -1", ncclCommInitAll(comm, -1, nullptr));
  say("InitAll too many", ncclCommInitAll(comm, count + 1, nullptr));
  say("InitAll same device", ncclCommInitAll(comm, 2, same));
  say("InitAll absent device", ncclCommInitAll(comm, 2, absent));
  ncclGetUniqueId(&id);
  say("InitRank 0 ranks", ncclCommInitRank(comm, 0, id, 0));
  say("InitRank rank 1 of 1", ncclCommInitRank(comm, 1, id, 1));
  say("InitRank rank -1", ncclCommInitRank(comm, 1, id, -1));
  ncclConfig_t config = {};
  say("InitRankConfig bad magic", ncclCommInitRankConfig(comm, 1, id, 0, &config));
  say("InitRank single", ncclCommInitRank(comm, 1, id, 0));
  int number = -1;
  say("Count", ncclCommCount(comm[0], &number));
  say("Count value", number);
  say("Count NULL", ncclCommCount(comm[0], nullptr));
  say("CuDevice", ncclCommCuDevice(comm[0], &number));
  say("UserRank", ncclCommUserRank(comm[0], &number));
  ncclResult_t error = ncclNumResults;
  say("GetAsyncError", ncclCommGetAsyncError(comm[0], &error));
  say("GetAsyncError value", error);
  say("GetAsyncError NULL", ncclCommGetAsyncError(comm[0], nullptr));
  say("Destroy", ncclCommDestroy(comm[0]));
  say("current context stays", [&] {
    CUcontext now = nullptr;
    cuCtxGetCurrent(&now);
    return now == pair.context[0];
  }());
}

void arguments() {
  Pair pair;
  auto send = reinterpret_cast<void*>(pair.send[0]);
  auto recv = reinterpret_cast<void*>(pair.recv[0]);
  const auto comm = pair.comm[0];
  const auto stream = pair.stream[0];
  say("type 12", pair.reduce(0, 4, 12));
  say("type -1", pair.reduce(0, 4, -1));
  say("op 5", pair.reduce(0, 4, ncclFloat32, 5));
  say("op 77", pair.reduce(0, 4, ncclFloat32, 77));
  say("op -1", pair.reduce(0, 4, ncclFloat32, -1));
  say("broadcast root 2", ncclBroadcast(send, recv, 4, ncclFloat32, 2, comm, stream));
  say("broadcast root -1", ncclBroadcast(send, recv, 4, ncclFloat32, -1, comm, stream));
  say("reduce root 2", ncclReduce(send, recv, 4, ncclFloat32, ncclSum, 2, comm, stream));
  say("send peer 2", ncclSend(send, 4, ncclFloat32, 2, comm, stream));
  say("recv peer -1", ncclRecv(recv, 4, ncclFloat32, -1, comm, stream));
  say("send to self outside a group", ncclSend(send, 4, ncclFloat32, 0, comm, stream));
  ncclRedOp_t op = ncclSum;
  float two = 2;
  say("premul type 12",
      ncclRedOpCreatePreMulSum(&op, &two, static_cast<ncclDataType_t>(12), ncclScalarHostImmediate, comm));
  say("premul", ncclRedOpCreatePreMulSum(&op, &two, ncclFloat32, ncclScalarHostImmediate, comm));
  say("premul other type", pair.reduce(0, 4, ncclInt32, op));
  say("premul destroy", ncclRedOpDestroy(op, comm));
  say("premul destroy twice", ncclRedOpDestroy(op, comm));
  say("destroy sum", ncclRedOpDestroy(ncclSum, comm));
  say("register 0", [&] {
    void* h;
    return ncclCommRegister(comm, send, 0, &h);
  }());
}

void groups() {
  Pair pair;
  say("start", ncclGroupStart());
  say("good", pair.reduce(0, 4));
  say("bad type", pair.reduce(1, 4, 12));
  say("end after bad", ncclGroupEnd());
  say("start 2", ncclGroupStart());
  say("nested start", ncclGroupStart());
  say("good 0", pair.reduce(0, 4));
  say("nested end", ncclGroupEnd());
  say("good 1", pair.reduce(1, 4));
  say("end 2", ncclGroupEnd());
  pair.wait();
  ncclResult_t error = ncclNumResults;
  say("async error", ncclCommGetAsyncError(pair.comm[0], &error));
  say("async error value", error);
  say("count 0", pair.reduce(0, 0));
  say("start 3", ncclGroupStart());
  say("count 0 in group 0", pair.reduce(0, 0));
  say("count 0 in group 1", pair.reduce(1, 0));
  say("end 3", ncclGroupEnd());
  pair.wait();
  say("self send start", ncclGroupStart());
  say("self send", ncclSend(reinterpret_cast<void*>(pair.send[0]), 4, ncclFloat32, 0, pair.comm[0], pair.stream[0]));
  say("self recv", ncclRecv(reinterpret_cast<void*>(pair.recv[0]), 4, ncclFloat32, 0, pair.comm[0], pair.stream[0]));
  say("self send end", ncclGroupEnd());
  pair.wait();
  say("finalize start", ncclGroupStart());
  say("finalize 0", ncclCommFinalize(pair.comm[0]));
  say("finalize 1", ncclCommFinalize(pair.comm[1]));
  say("finalize end", ncclGroupEnd());
  say("after finalize", pair.reduce(0, 4));
  say("destroy 0", ncclCommDestroy(pair.comm[0]));
  say("destroy 1", ncclCommDestroy(pair.comm[1]));
}

}  // namespace

// Each may crash a real NCCL.
void alone(const char* name, const std::function<ncclResult_t()>& call) {
  runGroup("alone", [&] { say(name, call()); });
}

int main() {
  runGroup("without devices", withoutDevices);
  runGroup("initialization", initialisation);
  runGroup("arguments", arguments);
  runGroup("groups", groups);
  alone("InitAll 0", [] {
    Pair pair(false);
    ncclComm_t comm[2];
    return ncclCommInitAll(comm, 0, nullptr);
  });
  alone("premul NULL op", [] {
    Pair pair;
    float two = 2;
    return ncclRedOpCreatePreMulSum(nullptr, &two, ncclFloat32, ncclScalarHostImmediate, pair.comm[0]);
  });
  alone("premul NULL scalar", [] {
    Pair pair;
    ncclRedOp_t op;
    return ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat32, ncclScalarHostImmediate, pair.comm[0]);
  });
  alone("InitRank NULL", [] {
    Pair pair(false);
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    return ncclCommInitRank(nullptr, 1, id, 0);
  });
  alone("after destroy Count", [] {
    Pair pair;
    int count = 0;
    ncclCommDestroy(pair.comm[0]);
    return ncclCommCount(pair.comm[0], &count);
  });
  return 0;
}

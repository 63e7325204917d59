// The API of collectives, send and receive: checks the arguments, then adds to the group or queues on the stream.
#include "buffer.h"
#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "problem.h"
#include "window.h"

using namespace shoal::nccl;

namespace {

struct Asked {
  const char* function;
  TaskKind kind;
  const void* send;
  void* recv;
  size_t count;
  ncclDataType_t type;
  int op;    // negative: no reduction
  int root;  // negative: neither root nor peer
};

constexpr int kNone = -1;

ncclResult_t checkStream(const Communicator& communicator, const char* function, CUstream stream) {
  ScopedContext scope(communicator.context);
  if (scope.status != CUDA_SUCCESS) return cudaProblem(scope.status, "making the communicator's context current");
  CUdevice device = 0;
  const CUresult status = cuStreamGetDevice(stream, &device);
  if (status != CUDA_SUCCESS) return cudaProblem(status, "looking at the stream");
  if (device != communicator.device) {
    return problem(ncclInvalidUsage, "%s: the stream is of device %d, the communicator works on device %d", function,
                   device, communicator.device);
  }
  return ncclSuccess;
}

ncclResult_t prepare(const Asked& asked, ncclComm_t comm, CUstream stream, bool hasRoot,
                     std::shared_ptr<Communicator>& communicator, Task& task) {
  if (const ncclResult_t result = Communicator::findReady(comm, asked.function, communicator)) return result;
  const Endpoint& endpoint = communicator->endpoint();
  if (asked.type < 0 || asked.type >= ncclNumTypes)
    return problem(ncclInvalidArgument, "%s: %d is not a data type", asked.function, asked.type);
  if (hasRoot && (asked.root < 0 || asked.root >= endpoint.ranks)) {
    return problem(ncclInvalidArgument, "%s: rank %d does not exist, the communicator has %d", asked.function,
                   asked.root, endpoint.ranks);
  }
  task.kind = asked.kind;
  task.send = asked.send;
  task.recv = asked.recv;
  task.count = asked.count;
  task.type = asked.type;
  task.root = hasRoot ? asked.root : 0;
  if (asked.op != kNone) {
    if (const ncclResult_t result = communicator->resolve(asked.op, asked.type, task)) return result;
  }
  const size_t element = bytesOf(task.type);
  if (asked.count > SIZE_MAX / element / static_cast<size_t>(endpoint.ranks)) {
    return problem(ncclInvalidArgument, "%s: %zu elements are more than memory can hold", asked.function, asked.count);
  }
  if (const size_t elements = sendElements(task, endpoint.ranks, endpoint.rank)) {
    if (const ncclResult_t result =
            checkBuffer(*communicator, asked.function, "sendbuff", task.send, elements * element))
      return result;
  }
  if (const size_t elements = recvElements(task, endpoint.ranks, endpoint.rank)) {
    if (const ncclResult_t result =
            checkBuffer(*communicator, asked.function, "recvbuff", task.recv, elements * element))
      return result;
  }
  return checkStream(*communicator, asked.function, stream);
}

ncclResult_t submit(const Asked& asked, ncclComm_t comm, CUstream stream, bool hasRoot) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    Task task = {};
    if (const ncclResult_t result = prepare(asked, comm, stream, hasRoot, communicator, task)) return noteError(result);
    return noteError(submitTask(communicator, task, stream));
  });
}

// A negative code must not pass for "no reduction".
int opOf(ncclRedOp_t op) { return static_cast<int>(op) < 0 ? ncclMaxRedOp : static_cast<int>(op); }

// The checks that puts, signals and waits share.
ncclResult_t prepareOneSided(const char* function, int peer, int sigIdx, int ctx, unsigned flags, ncclComm_t comm,
                             CUstream stream, std::shared_ptr<Communicator>& communicator) {
  if (const ncclResult_t result = Communicator::findReady(comm, function, communicator)) return result;
  if (peer < 0 || peer >= communicator->ranks()) {
    return problem(ncclInvalidArgument, "%s: rank %d does not exist, the communicator has %d", function, peer,
                   communicator->ranks());
  }
  if (sigIdx != 0) return problem(ncclInvalidArgument, "%s: the signal index is %d, there is only 0", function, sigIdx);
  if (ctx != 0) return problem(ncclInvalidArgument, "%s: the context is %d, there is only 0", function, ctx);
  if (flags != 0) return problem(ncclInvalidArgument, "%s: flags are 0x%x, not 0", function, flags);
  return checkStream(*communicator, function, stream);
}

}  // namespace

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclAllReduce", TaskKind::allReduce, sendbuff, recvbuff, count, datatype, opOf(op), kNone}, comm,
                stream, false);
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclReduce", TaskKind::reduce, sendbuff, recvbuff, count, datatype, opOf(op), root}, comm, stream,
                true);
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclBroadcast", TaskKind::broadcast, sendbuff, recvbuff, count, datatype, kNone, root}, comm, stream,
                true);
}

ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return submit({"ncclBcast", TaskKind::broadcast, buff, buff, count, datatype, kNone, root}, comm, stream, true);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclAllGather", TaskKind::allGather, sendbuff, recvbuff, sendcount, datatype, kNone, kNone}, comm,
                stream, false);
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit(
      {"ncclReduceScatter", TaskKind::reduceScatter, sendbuff, recvbuff, recvcount, datatype, opOf(op), kNone}, comm,
      stream, false);
}

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream) {
  return submit({"ncclAlltoAll", TaskKind::allToAll, sendbuff, recvbuff, count, datatype, kNone, kNone}, comm, stream,
                false);
}

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclGather", TaskKind::gather, sendbuff, recvbuff, count, datatype, kNone, root}, comm, stream, true);
}

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclScatter", TaskKind::scatter, sendbuff, recvbuff, count, datatype, kNone, root}, comm, stream,
                true);
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return submit({"ncclSend", TaskKind::send, sendbuff, nullptr, count, datatype, kNone, peer}, comm, stream, true);
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return submit({"ncclRecv", TaskKind::recv, nullptr, recvbuff, count, datatype, kNone, peer}, comm, stream, true);
}

ncclResult_t ncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
                           size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclPutSignal";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = prepareOneSided(function, peer, sigIdx, ctx, flags, comm, stream, communicator))
      return noteError(result);
    if (datatype < 0 || datatype >= ncclNumTypes)
      return noteError(problem(ncclInvalidArgument, "%s: %d is not a data type", function, datatype));
    if (peerWin == nullptr) return noteError(problem(ncclInvalidArgument, "%s: peerWin is NULL", function));
    if (localbuff == nullptr) return noteError(problem(ncclInvalidArgument, "%s: localbuff is NULL", function));
    std::shared_ptr<Window> window;
    if (const ncclResult_t result = Window::find(peerWin, function, window)) return noteError(result);
    if (!window->isOf(*communicator) || !window->isSymmetric()) {
      return noteError(
          problem(ncclInvalidArgument, "%s: peerWin is of another communicator, or not symmetric", function));
    }
    const size_t element = bytesOf(datatype), there = window->bytesOf(peer);
    if (count > SIZE_MAX / element || peerWinOffset > there || count * element > there - peerWinOffset) {
      return noteError(
          problem(ncclInvalidArgument,
                  "%s: %zu elements of %zu bytes at offset %zu do not fit the %zu bytes of rank %d's window", function,
                  count, element, peerWinOffset, there, peer));
    }
    const auto from = communicator->windowAround(localbuff, count * element);
    if (from == nullptr || !from->isSymmetric()) {
      return noteError(problem(ncclInvalidArgument,
                               "%s: localbuff does not lie in a symmetric window of the communicator", function));
    }
    Task task = {};
    task.kind = TaskKind::putSignal;
    task.send = localbuff;
    task.recv = window->at(peer) + peerWinOffset;
    task.count = count;
    task.type = datatype;
    task.root = peer;
    task.windows[0] = from;
    task.windows[1] = window;
    return noteError(submitTask(communicator, task, stream));
  });
}

ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = prepareOneSided("ncclSignal", peer, sigIdx, ctx, flags, comm, stream, communicator))
      return noteError(result);
    Task task = {};
    task.kind = TaskKind::signal;
    task.root = peer;
    return noteError(submitTask(communicator, task, stream));
  });
}

ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    constexpr char function[] = "ncclWaitSignal";
    std::shared_ptr<Communicator> communicator;
    if (const ncclResult_t result = Communicator::findReady(comm, function, communicator)) return noteError(result);
    if (nDesc < 1 || signalDescs == nullptr)
      return noteError(problem(ncclInvalidArgument, "%s: there are no descriptors", function));
    Task task = {};
    task.kind = TaskKind::waitSignal;
    for (int index = 0; index < nDesc; ++index) {
      const ncclWaitSignalDesc_t& each = signalDescs[index];
      if (const ncclResult_t result =
              prepareOneSided(function, each.peer, each.sigIdx, each.ctx, 0, comm, stream, communicator)) {
        return noteError(result);
      }
      if (each.opCnt < 1)
        return noteError(
            problem(ncclInvalidArgument, "%s: descriptor %d waits for %d operations", function, index, each.opCnt));
      task.waits.push_back({each.peer, static_cast<uint64_t>(each.opCnt)});
    }
    return noteError(submitTask(communicator, task, stream));
  });
}

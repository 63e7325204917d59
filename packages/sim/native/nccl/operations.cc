// The collectives, send and receive, as they are called: checks, then into the group or onto the stream.
#include "buffer.h"
#include "communicator.h"
#include "group.h"
#include "guard.h"
#include "problem.h"

using namespace shoal::nccl;

namespace {

struct Asked {
  const char* function;
  TaskKind kind;
  const void* send;
  void* recv;
  size_t count;
  ncclDataType_t type;
  int op;    // negative: the operation reduces nothing
  int root;  // negative: it has neither root nor peer
};

constexpr int kNone = -1;

ncclResult_t prepare(const Asked& asked, ncclComm_t comm, CUstream stream, bool hasRoot, std::shared_ptr<Communicator>& communicator, Task& task) {
  if (const ncclResult_t result = Communicator::findReady(comm, asked.function, communicator)) return result;
  const Endpoint& endpoint = communicator->endpoint();
  if (asked.type < 0 || asked.type >= ncclNumTypes) return problem(ncclInvalidArgument, "%s: %d is not a data type", asked.function, asked.type);
  if (hasRoot && (asked.root < 0 || asked.root >= endpoint.ranks)) {
    return problem(ncclInvalidArgument, "%s: rank %d does not exist, the communicator has %d", asked.function, asked.root, endpoint.ranks);
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
    if (const ncclResult_t result = checkBuffer(*communicator, asked.function, "sendbuff", task.send, elements * element)) return result;
  }
  if (const size_t elements = recvElements(task, endpoint.ranks, endpoint.rank)) {
    if (const ncclResult_t result = checkBuffer(*communicator, asked.function, "recvbuff", task.recv, elements * element)) return result;
  }
  ScopedContext scope(communicator->context);
  if (scope.status != CUDA_SUCCESS) return cudaProblem(scope.status, "making the communicator's context current");
  CUdevice device = 0;
  const CUresult status = cuStreamGetDevice(stream, &device);
  if (status != CUDA_SUCCESS) return cudaProblem(status, "looking at the stream");
  if (device != communicator->device) {
    return problem(ncclInvalidUsage, "%s: the stream is of device %d, the communicator works on device %d", asked.function, device,
                   communicator->device);
  }
  return ncclSuccess;
}

ncclResult_t submit(const Asked& asked, ncclComm_t comm, CUstream stream, bool hasRoot) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Communicator> communicator;
    Task task = {};
    if (const ncclResult_t result = prepare(asked, comm, stream, hasRoot, communicator, task)) return noteError(result);
    return noteError(submitTask(communicator, task, stream));
  });
}

// A negative code must not be taken for "no operation".
int opOf(ncclRedOp_t op) { return static_cast<int>(op) < 0 ? ncclMaxRedOp : static_cast<int>(op); }

}  // namespace

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit({"ncclAllReduce", TaskKind::allReduce, sendbuff, recvbuff, count, datatype, opOf(op), kNone}, comm, stream, false);
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return submit({"ncclReduce", TaskKind::reduce, sendbuff, recvbuff, count, datatype, opOf(op), root}, comm, stream, true);
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit({"ncclBroadcast", TaskKind::broadcast, sendbuff, recvbuff, count, datatype, kNone, root}, comm, stream, true);
}

ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclBcast", TaskKind::broadcast, buff, buff, count, datatype, kNone, root}, comm, stream, true);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit({"ncclAllGather", TaskKind::allGather, sendbuff, recvbuff, sendcount, datatype, kNone, kNone}, comm, stream, false);
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclReduceScatter", TaskKind::reduceScatter, sendbuff, recvbuff, recvcount, datatype, opOf(op), kNone}, comm, stream, false);
}

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclAlltoAll", TaskKind::allToAll, sendbuff, recvbuff, count, datatype, kNone, kNone}, comm, stream, false);
}

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return submit({"ncclGather", TaskKind::gather, sendbuff, recvbuff, count, datatype, kNone, root}, comm, stream, true);
}

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  return submit({"ncclScatter", TaskKind::scatter, sendbuff, recvbuff, count, datatype, kNone, root}, comm, stream, true);
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclSend", TaskKind::send, sendbuff, nullptr, count, datatype, kNone, peer}, comm, stream, true);
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream) {
  return submit({"ncclRecv", TaskKind::recv, nullptr, recvbuff, count, datatype, kNone, peer}, comm, stream, true);
}

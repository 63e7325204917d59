// One operation of a rank, with its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "reduce.h"
#include "shoal/nccl.h"

namespace shoal::nccl {

enum class TaskKind : uint32_t {
  allReduce,
  reduce,
  broadcast,
  allGather,
  reduceScatter,
  allToAll,
  gather,
  scatter,
  send,
  recv,
  putSignal,
  signal,
  waitSignal
};

class Window;

struct SignalWait {
  int peer;
  uint64_t count;
  uint64_t target = 0;  // the peer's total number of signals to wait for
};

struct Task {
  TaskKind kind;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;  // in elements; the `count` argument of the NCCL function
  ncclDataType_t type = ncclInt8;
  Reducer reducer = Reducer::sum;
  uint64_t scalar = 0;                  // for preMulSum, in the low bytes
  const void* scalarAddress = nullptr;  // the scalar is read from here when the operation runs
  int root = 0;                         // or the peer of send, recv, put and signal
  std::vector<SignalWait> waits;
  std::shared_ptr<Window> windows[2];  // windows that a put reads and writes; kept alive until it is done

  bool isPointToPoint() const { return kind == TaskKind::send || kind == TaskKind::recv; }
  bool isOneSided() const {
    return kind == TaskKind::putSignal || kind == TaskKind::signal || kind == TaskKind::waitSignal;
  }
};

const char* nameOf(TaskKind kind);

// The number of elements that a rank sends or receives; 0 if the buffer is not used.
size_t sendElements(const Task& task, int ranks, int rank);
size_t recvElements(const Task& task, int ranks, int rank);

}  // namespace shoal::nccl

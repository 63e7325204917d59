// One operation of a rank, as it was asked for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reduce.h"
#include "shoal/nccl.h"

namespace shoal::nccl {

enum class TaskKind : uint32_t { allReduce, reduce, broadcast, allGather, reduceScatter, allToAll, gather, scatter, send, recv };

struct Task {
  TaskKind kind;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;  // elements; the `count` argument of the NCCL function
  ncclDataType_t type = ncclInt8;
  Reducer reducer = Reducer::sum;
  uint64_t scalar = 0;                 // of preMulSum, its bits in the low bytes
  const void* scalarAddress = nullptr; // where the scalar is read from when the operation runs
  int root = 0;                        // or the peer of send and recv

  bool isPointToPoint() const { return kind == TaskKind::send || kind == TaskKind::recv; }
};

const char* nameOf(TaskKind kind);

// How many elements a rank sends and receives; 0 where the buffer is not used.
size_t sendElements(const Task& task, int ranks, int rank);
size_t recvElements(const Task& task, int ranks, int rank);

}  // namespace shoal::nccl

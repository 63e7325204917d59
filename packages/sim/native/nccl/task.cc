#include "task.h"

namespace shoal::nccl {

const char* nameOf(TaskKind kind) {
  switch (kind) {
    case TaskKind::allReduce: return "AllReduce";
    case TaskKind::reduce: return "Reduce";
    case TaskKind::broadcast: return "Broadcast";
    case TaskKind::allGather: return "AllGather";
    case TaskKind::reduceScatter: return "ReduceScatter";
    case TaskKind::allToAll: return "AlltoAll";
    case TaskKind::gather: return "Gather";
    case TaskKind::scatter: return "Scatter";
    case TaskKind::send: return "Send";
    case TaskKind::recv: return "Recv";
    case TaskKind::putSignal: return "PutSignal";
    case TaskKind::signal: return "Signal";
    case TaskKind::waitSignal: return "WaitSignal";
  }
  return "";
}

size_t sendElements(const Task& task, int ranks, int rank) {
  const auto all = static_cast<size_t>(ranks);
  switch (task.kind) {
    case TaskKind::broadcast: return rank == task.root ? task.count : 0;
    case TaskKind::reduceScatter:
    case TaskKind::allToAll: return task.count * all;
    case TaskKind::scatter: return rank == task.root ? task.count * all : 0;
    case TaskKind::recv:
    case TaskKind::signal:
    case TaskKind::waitSignal: return 0;
    default: return task.count;
  }
}

size_t recvElements(const Task& task, int ranks, int rank) {
  const auto all = static_cast<size_t>(ranks);
  switch (task.kind) {
    case TaskKind::reduce: return rank == task.root ? task.count : 0;
    case TaskKind::allGather:
    case TaskKind::allToAll: return task.count * all;
    case TaskKind::gather: return rank == task.root ? task.count * all : 0;
    case TaskKind::send:
    case TaskKind::signal:
    case TaskKind::waitSignal: return 0;
    default: return task.count;
  }
}

}  // namespace shoal::nccl

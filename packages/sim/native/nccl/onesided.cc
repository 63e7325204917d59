#include "onesided.h"

#include <cstring>

namespace shoal::nccl {

ncclResult_t put(Endpoint& endpoint, const Task& task) {
  if (const ncclResult_t failed = endpoint.failure()) return failed;
  if (task.count != 0) memmove(task.recv, task.send, task.count * bytesOf(task.type));
  Segment& segment = *endpoint.segment;
  segment.channel(endpoint.rank, task.root).signals.fetch_add(1);
  auto& doorbell = segment.slot(task.root).doorbell;
  doorbell.fetch_add(1);
  futexWakeAll(doorbell);
  return ncclSuccess;
}

ncclResult_t waitForSignals(Endpoint& endpoint, const Task& task) {
  Segment& segment = *endpoint.segment;
  for (const SignalWait& wait : task.waits) {
    const auto hasCome = [&] { return segment.channel(wait.peer, endpoint.rank).signals.load() >= wait.target; };
    const ncclResult_t result = endpoint.waitUntil(segment.slot(endpoint.rank).doorbell,
                                                   {uint64_t{1} << wait.peer, "a wait for signals"}, hasCome);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace shoal::nccl

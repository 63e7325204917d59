// Events of a whole context or green context. Recording one waits for the work of all its streams, and all its streams
// can wait for it.
#include "context.h"

#include <algorithm>

#include "event.h"
#include "graph/eventwork.h"
#include "green.h"
#include "stream.h"

namespace shoal {

CUresult Context::record(const std::shared_ptr<Event>& event, const GreenContext* green) {
  Operation mark;
  if (const CUresult status = prepareRecord(event, mark)) return status;
  auto queued = std::move(mark.queued);
  {
    std::lock_guard lock(streamsMutex_);
    if (!marks_) marks_ = std::make_shared<Stream>(shared_from_this(), StreamKind::nonBlocking, 0);
  }
  for (auto& stream : streams()) {
    if ((green == nullptr || stream->green.get() == green) && !stream->isIdle())
      mark.after.push_back({stream, stream->enqueued()});
  }
  const uint64_t sequence = marks_->enqueue(std::move(mark));
  queued(marks_, sequence);
  return CUDA_SUCCESS;
}

CUresult Context::waitFor(const std::shared_ptr<Event>& event, const GreenContext* green) {
  defaultStream();
  for (auto& stream : streams()) {
    if (green != nullptr && stream->green.get() != green) continue;
    Operation wait;
    if (const CUresult status = prepareWait(event, stream, wait)) return status;
    if (wait.run) stream->enqueue(std::move(wait));
  }
  auto recording = event->last();
  if (event->shared || !recording) return CUDA_SUCCESS;
  std::lock_guard lock(streamsMutex_);
  gates_.push_back({recording->point, green});
  return CUDA_SUCCESS;
}

void Context::hold(Stream& stream) {
  Operation wait;
  {
    std::lock_guard lock(streamsMutex_);
    const auto isOver = [](auto& gate) { return gate.first.stream->hasFinished(gate.first.sequence); };
    gates_.erase(std::remove_if(gates_.begin(), gates_.end(), isOver), gates_.end());
    for (auto& [point, green] : gates_) {
      if (green == nullptr || stream.green.get() == green) wait.after.push_back(point);
    }
  }
  if (wait.after.empty()) return;
  wait.run = [] { return CUDA_SUCCESS; };
  stream.enqueue(std::move(wait));
}

}  // namespace shoal

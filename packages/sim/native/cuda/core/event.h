// An event: a point in a stream, with the time at which the stream came by.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "shoal/cuda.h"
#include "stream.h"

namespace shoal {

class Context;
class SharedEvent;
struct CapturedPoint;

// One recording. A wait that was queued keeps the recording it saw, whatever is recorded later.
struct Recording {
  Dependency point;
  std::atomic<uint64_t> nanoseconds{0};
};

class Event {
 public:
  Event(std::shared_ptr<Context> context, unsigned flags) : context(std::move(context)), flags(flags) {}

  std::shared_ptr<Recording> last() {
    std::lock_guard lock(mutex_);
    return recording_;
  }
  void set(std::shared_ptr<Recording> recording) {
    std::lock_guard lock(mutex_);
    recording_ = std::move(recording);
    captured_.reset();
  }
  // Recorded in a stream that is captured: a place in a graph, and no time.
  std::shared_ptr<CapturedPoint> captured() {
    std::lock_guard lock(mutex_);
    return captured_;
  }
  void setCaptured(std::shared_ptr<CapturedPoint> point) {
    std::lock_guard lock(mutex_);
    captured_ = std::move(point);
  }

  const std::shared_ptr<Context> context;
  const unsigned flags;
  std::atomic<bool> contextDestroyed{false};
  std::shared_ptr<SharedEvent>
      shared;             // what other processes see, of an interprocess event; set before it gets a handle
  bool isOpened = false;  // made by another process; likewise

 private:
  std::mutex mutex_;
  std::shared_ptr<Recording> recording_;  // null: never recorded
  std::shared_ptr<CapturedPoint> captured_;
};

CUresult resolveEvent(CUevent handle, std::shared_ptr<Event>& event);

// Of streams that are captured; `isDone` is false when the event has nothing to do with a capture.
CUresult recordCaptured(const std::shared_ptr<Stream>& stream, Event& event);
CUresult waitCaptured(const std::shared_ptr<Stream>& stream, Event& event, bool& isDone);
// CUDA_ERROR_CAPTURED_EVENT when its last recording was captured, which ends what can come of the capture.
CUresult checkCapturedEvent(Event& event);
// A stream that is captured is destroyed.
void abandonCapture(Stream& stream);

}  // namespace shoal

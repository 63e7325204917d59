// An event: a point in a stream, and the time when the stream reached it.
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

// One recording. A queued wait keeps the recording it saw, even if the event is recorded again.
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
  // Set if the event was recorded in a capturing stream: a position in a graph, without a time.
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
      shared;             // state of an interprocess event that other processes see; set before the event gets a handle
  bool isOpened = false;  // created by another process; set before the event gets a handle

 private:
  std::mutex mutex_;
  std::shared_ptr<Recording> recording_;  // null: never recorded
  std::shared_ptr<CapturedPoint> captured_;
};

CUresult resolveEvent(CUevent handle, std::shared_ptr<Event>& event);

// For capturing streams. `isDone` is false if the event has nothing to do with a capture.
CUresult recordCaptured(const std::shared_ptr<Stream>& stream, Event& event);
CUresult waitCaptured(const std::shared_ptr<Stream>& stream, Event& event, bool& isDone);
// Returns CUDA_ERROR_CAPTURED_EVENT and invalidates the capture if the last recording was captured.
CUresult checkCapturedEvent(Event& event);
// Called when a capturing stream is destroyed.
void abandonCapture(Stream& stream);

}  // namespace shoal

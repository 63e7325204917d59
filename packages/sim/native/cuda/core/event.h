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
  }

  const std::shared_ptr<Context> context;
  const unsigned flags;
  std::atomic<bool> contextDestroyed{false};
  std::shared_ptr<SharedEvent> shared;  // what other processes see, of an interprocess event; set before it gets a handle
  bool isOpened = false;                // made by another process; likewise

 private:
  std::mutex mutex_;
  std::shared_ptr<Recording> recording_;  // null: never recorded
};

CUresult resolveEvent(CUevent handle, std::shared_ptr<Event>& event);

}  // namespace shoal

// The part of an event that other processes see: how often it was recorded, and which recordings the work has passed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/sharedfile.h"

namespace shoal {

class SharedEvent {
 public:
  static std::shared_ptr<SharedEvent> create();
  static std::shared_ptr<SharedEvent> open(std::shared_ptr<SharedFile> file);
  explicit SharedEvent(std::shared_ptr<SharedFile> file);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  // A new recording by this process; its number.
  uint64_t record();
  void pass(uint64_t recording);
  uint64_t last() const;
  // Also when the process that recorded last has ended: its work will not come by any more.
  bool hasPassed(uint64_t recording) const;
  // Until it has passed, or `givesUp` says so.
  void waitFor(uint64_t recording, const std::function<bool()>& givesUp) const;

  const std::shared_ptr<SharedFile> file;

 private:
  struct Page {
    std::atomic<uint64_t> recorded;
    std::atomic<uint64_t> passed;
    std::atomic<uint64_t> recorder[2];  // the name under which the process that recorded last can be reached
  };
  bool isRecorderGone() const;
  Page* const page_;
};

}  // namespace shoal

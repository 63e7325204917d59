// The shared state of an event: how often it was recorded, and which recordings have completed.
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

  // Starts a new recording by this process and returns its number.
  uint64_t record();
  void pass(uint64_t recording);
  uint64_t last() const;
  // Also true if the last recorder's process has ended, because its work cannot complete any more.
  bool hasPassed(uint64_t recording) const;
  // Returns when the recording has completed or `givesUp` returns true.
  void waitFor(uint64_t recording, const std::function<bool()>& givesUp) const;

  const std::shared_ptr<SharedFile> file;

 private:
  struct Page {
    std::atomic<uint64_t> recorded;
    std::atomic<uint64_t> passed;
    std::atomic<uint64_t> recorder[2];  // the name of the process that recorded last
  };
  bool isRecorderGone() const;
  Page* const page_;
};

}  // namespace shoal

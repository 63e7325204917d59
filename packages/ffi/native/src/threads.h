// Native threads for calls that block. A thread that is idle for a while ends; none of them keeps the process alive.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace shoal {

using Task = std::function<void()>;

// Runs the task on a thread that is free, or on a new one: a task that blocks never delays another.
// False when the system gives no more threads.
bool RunOnThread(Task task);

// Whether a thread may look for something again and again while another works on it: on few processors it would only
// take the other's place.
bool HasSpareProcessors();

// Tasks of one lane run one after the other, in order, always on the same thread.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  // `when_idle` is called once the lane has had nothing to do for a moment, unless more tasks come; the last one
  // counts.
  bool Run(Task task, Task when_idle = nullptr);
  void Close();  // the thread ends after what is queued
  // Blocks until everything queued has run. False when the time is over first.
  bool WaitUntilIdle(std::chrono::milliseconds patience);

 private:
  void Serve();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Task> tasks_;
  Task when_idle_;
  bool running_ = false;               // a task that was taken out and has not returned
  std::atomic<bool> has_news_{false};  // a task or the end, for whoever looks without the lock
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace shoal

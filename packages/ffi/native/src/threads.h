// Native threads for calls that block. A thread ends after it was idle for a while. No thread keeps the process alive.
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

// Runs the task on an idle thread or on a new one, so a task that blocks never delays another task. Returns false if
// the system cannot start a thread.
bool RunOnThread(Task task);

// True if a thread may poll while another thread works. With few processors, polling takes a processor from the work
// itself.
bool HasSpareProcessors();

// The tasks of a lane run in order, one at a time, always on the same thread.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  // Calls `when_idle` after the lane has had no task for a moment. A later `when_idle` replaces an earlier one.
  bool Run(Task task, Task when_idle = nullptr);
  void Close();  // the thread ends after the queued tasks
  // Blocks until all queued tasks have run. Returns false on timeout.
  bool WaitUntilIdle(std::chrono::milliseconds patience);

 private:
  void Serve();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Task> tasks_;
  Task when_idle_;
  bool running_ = false;               // a task was taken from the queue and has not returned
  std::atomic<bool> has_news_{false};  // a task or the end, for threads that poll without the lock
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace shoal

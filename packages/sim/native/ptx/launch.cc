#include "launch.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>

#include "core/context.h"
#include "graph/devicelaunch.h"
#include "core/report.h"
#include "core/state.h"

namespace shoal::ptx {

namespace {

std::atomic<uint64_t> nextLaunch{1};

// Threads that help with the blocks of launches. There are few; they start on first use and never end.
class Pool {
 public:
  unsigned helpers() const { return helpers_; }

  struct Job {
    Launch* launch;
    unsigned wanted;
    unsigned running = 0;
  };

  void run(Launch& launch, unsigned wanted) {
    Job job{&launch, wanted};
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(&job);
      while (threads_ < helpers_ && threads_ < wanted + busy_) {
        try {
          std::thread([this] { loop(); }).detach();
        } catch (const std::system_error&) {
          break;  // the calling thread and the existing helpers do the work
        }
        ++threads_;
      }
    }
    changed_.notify_all();
    launch.work();
    std::unique_lock lock(mutex_);
    job.wanted = 0;
    for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
      if (*at == &job) {
        jobs_.erase(at);
        break;
      }
    }
    changed_.wait(lock, [&] { return job.running == 0; });
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      changed_.wait(lock, [&] {
        for (Job* each : jobs_) {
          if (each->wanted > 0) job = each;
        }
        return job != nullptr;
      });
      --job->wanted;
      ++job->running;
      ++busy_;
      Launch* launch = job->launch;
      lock.unlock();
      launch->work();
      lock.lock();
      --busy_;
      --job->running;
      changed_.notify_all();
    }
  }

  const unsigned helpers_ = std::max(1u, std::thread::hardware_concurrency()) - 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;
  unsigned threads_ = 0, busy_ = 0;
};

Pool& pool() {
  static Pool* shared = new Pool;
  return *shared;
}

// The time limit of a kernel, in seconds; 0: no limit.
double timeLimit() {
  static const double limit = [] {
    const char* text = getenv("SHOAL_SIM_KERNEL_SECONDS");
    return text == nullptr ? 0.0 : strtod(text, nullptr);
  }();
  return limit;
}

}  // namespace

Launch::Launch(std::shared_ptr<Context> ofContext, std::shared_ptr<Module> ofModule, const Kernel& ofKernel,
               const LaunchShape& ofShape, std::vector<uint8_t> given, std::shared_ptr<Heap> ofHeap)
    : context(std::move(ofContext)),
      module(std::move(ofModule)),
      kernel(ofKernel),
      shape(ofShape),
      parameters(std::move(given)),
      heap(std::move(ofHeap)),
      graphRun(GraphRun::current()),
      id(nextLaunch.fetch_add(1)) {
  clusters = shape.grid.count() / shape.cluster.count();
  if (shape.isCooperative) gridWorkspace.resize(64);
}

Launch::~Launch() {
  for (auto& each : held_) {
    if (each.second->backing != nullptr && each.second->backing->uses() != nullptr)
      each.second->backing->uses()->leave();
  }
}

CUresult Launch::run() {
  if (timeLimit() > 0)
    end_ = std::chrono::steady_clock::now() + std::chrono::microseconds(static_cast<int64_t>(timeLimit() * 1e6));
  // Waking another thread takes as long as running a few thousand threads of a kernel.
  constexpr uint64_t kThreadsWorthHelp = 4096;
  const uint64_t threads = shape.grid.count() * shape.block.count();
  const uint64_t most = std::min<uint64_t>(clusters, shape.countOfMultiprocessors());
  const auto helpers =
      static_cast<unsigned>(std::min<uint64_t>(pool().helpers(), shape.isWhole() ? clusters - 1 : most - 1));
  if (helpers == 0 || threads < kThreadsWorthHelp) work();
  else pool().run(*this, helpers);
  if (!printed_.empty()) {
    fwrite(printed_.data(), 1, printed_.size(), stdout);
    fflush(stdout);
  }
  std::lock_guard lock(mutex_);
  return status_;
}

void Launch::work() {
  try {
    Worker(*this).run();
  } catch (const std::bad_alloc&) {
    fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the host has too little memory");
  }
}

void Launch::fail(CUresult status, const std::string& message) {
  {
    std::lock_guard lock(mutex_);
    if (status_ != CUDA_SUCCESS) return;
    status_ = status;
    isStopped_ = true;
  }
  if (!isChecking()) return;
  const std::string report = "kernel " + kernel.name + ", " + message;
  fprintf(stderr, "shoal: %s\n", report.c_str());
  describeResult(status, report);
}

bool Launch::mustStop() {
  if (isStopped_.load(std::memory_order_relaxed)) return true;
  if (context->isEnding || context->error != CUDA_SUCCESS) return true;
  if (end_ != std::chrono::steady_clock::time_point() && std::chrono::steady_clock::now() > end_) {
    fail(CUDA_ERROR_LAUNCH_TIMEOUT, "it ran longer than SHOAL_SIM_KERNEL_SECONDS");
    return true;
  }
  return false;
}

void Launch::findRange(uint64_t address, unsigned size, bool isWrite, Range& range) {
  auto out = [&] {
    failOutOfRange(isWrite ? "global memory that is written" : "global memory that is read", address, size);
  };
  if (!gridWorkspace.empty()) {
    const auto base = reinterpret_cast<uint64_t>(gridWorkspace.data());
    if (address >= base && address + size <= base + gridWorkspace.size() * 8) {
      range = {base, base + gridWorkspace.size() * 8, true};
      return;
    }
  }
  auto found = state().allocations.covering(address);
  if (!found || !found->holds(address, size)) found = state().leaving.covering(address, size);
  if (!found) out();
  const bool isMapped = found->backing != nullptr && found->backing->uses() != nullptr;
  {
    std::lock_guard lock(mutex_);
    if (held_.count(found->base) == 0 || held_[found->base] != found) {
      // Increment the count before checking the rights: a thread that removes rights waits for the count afterwards.
      if (isMapped) found->backing->uses()->enter();
      if (held_.count(found->base) != 0 && held_[found->base]->backing != nullptr &&
          held_[found->base]->backing->uses() != nullptr)
        held_[found->base]->backing->uses()->leave();
      held_[found->base] = found;
    }
  }
  if (!found->allows(*context, Access::read, false)) out();
  const bool isWritable = found->allows(*context, Access::write, false);
  if (isWrite && !isWritable) out();
  range = {found->base, found->base + found->size, isWritable};
}

void Launch::print(const std::string& text) {
  std::lock_guard lock(mutex_);
  printed_ += text;
  // Hardware's buffer has a fixed size and loses output. Here, a full buffer is written out.
  if (printed_.size() > (1 << 20)) {
    fwrite(printed_.data(), 1, printed_.size(), stdout);
    printed_.clear();
  }
}

}  // namespace shoal::ptx

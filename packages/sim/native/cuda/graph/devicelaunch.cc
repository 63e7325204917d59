#include "devicelaunch.h"

#include <deque>
#include <utility>

#include "core/context.h"
#include "exec.h"
#include "ptx/problem.h"

namespace shoal {

namespace {

constexpr unsigned kSuccess = 0, kInvalidValue = 1;  // cudaError_t
// The streams that a kernel names: their numbers say when the graph runs.
constexpr uint64_t kTail = uint64_t{1} << 56, kFireAndForget = uint64_t{2} << 56, kSibling = uint64_t{3} << 56;
constexpr size_t kMostFired = 120, kMostTails = 255;

thread_local GraphRun* currentRun = nullptr;

class AsCurrent {
 public:
  explicit AsCurrent(GraphRun* run) : before_(std::exchange(currentRun, run)) {}
  ~AsCurrent() { currentRun = before_; }

 private:
  GraphRun* const before_;
};

bool mustStop(const Stream& stream) { return stream.context->isEnding || stream.context->error != CUDA_SUCCESS; }

// What was brought to the device last, all nodes in their order; `tails`: what its kernels leave to run after it.
CUresult runOnce(const std::shared_ptr<GraphExec>& exec, const std::shared_ptr<Stream>& stream, std::deque<std::shared_ptr<GraphExec>>& tails) {
  GraphRun run(exec);
  exec->isPending = false;
  for (auto& work : exec->uploaded()) {
    if (mustStop(*stream)) return CUDA_SUCCESS;
    Operation operation;
    if (const CUresult status = work->prepare(stream, operation)) return status;
    for (auto& dependency : operation.after) dependency.stream->waitFor(dependency.sequence);
    if (operation.queued) operation.queued(stream, stream->running());
    if (const CUresult status = run.runNode(stream, operation.run)) return status;
  }
  auto left = run.takeTails();
  tails.insert(tails.begin(), left.begin(), left.end());
  return CUDA_SUCCESS;
}

CUresult runAll(std::deque<std::shared_ptr<GraphExec>> open, const std::shared_ptr<Stream>& stream) {
  while (!open.empty() && !mustStop(*stream)) {
    const auto exec = open.front();
    open.pop_front();
    if (const CUresult status = runOnce(exec, stream, open)) return status;
  }
  return CUDA_SUCCESS;
}

}  // namespace

GraphRun::GraphRun(std::shared_ptr<GraphExec> exec) : exec_(std::move(exec)) { ++exec_->running; }
GraphRun::~GraphRun() { --exec_->running; }

GraphRun* GraphRun::current() { return currentRun; }

uint64_t GraphRun::handle() const { return exec_->isForKernels() ? exec_->number : 0; }

unsigned GraphRun::launch(uint64_t handle, uint64_t how) {
  if (handle == 0 || (how != kTail && how != kFireAndForget && how != kSibling)) return kInvalidValue;
  const auto exec = executables().find(reinterpret_cast<CUgraphExec>(handle));
  if (!exec || !exec->isForKernels()) throw ptx::Fault{CUDA_ERROR_ILLEGAL_ADDRESS, "a launch of what is no executable graph for kernels"};
  std::lock_guard lock(mutex_);
  if (!exec->isUploaded() || (how != kTail && exec->running != 0)) return kInvalidValue;
  if (how == kTail ? tails_.size() >= kMostTails : countOfFired_ >= kMostFired) return kInvalidValue;
  if (exec->isPending.exchange(true)) return kInvalidValue;
  if (how == kTail) {
    tails_.push_back(exec);
    return kSuccess;
  }
  ++countOfFired_;
  fired_.push_back(exec);
  return kSuccess;
}

std::vector<std::shared_ptr<GraphExec>> GraphRun::takeTails() {
  std::lock_guard lock(mutex_);
  return std::move(tails_);
}

CUresult GraphRun::runNode(const std::shared_ptr<Stream>& stream, const std::function<CUresult()>& node) {
  {
    const AsCurrent current(this);
    if (const CUresult status = node()) return status;
  }
  std::deque<std::shared_ptr<GraphExec>> fired;
  {
    std::lock_guard lock(mutex_);
    fired.assign(fired_.begin(), fired_.end());
    fired_.clear();
  }
  return runAll(std::move(fired), stream);
}

CUresult GraphRun::runTails(const std::shared_ptr<Stream>& stream) {
  const auto tails = takeTails();
  return runAll({tails.begin(), tails.end()}, stream);
}

}  // namespace shoal

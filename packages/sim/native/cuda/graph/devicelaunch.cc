#include "devicelaunch.h"

#include <iterator>
#include <utility>

#include "copywork.h"
#include "core/allocation.h"
#include "core/context.h"
#include "core/state.h"
#include "exec.h"

namespace shoal {

namespace {

constexpr unsigned kSuccess = 0, kInvalidValue = 1;  // cudaError_t
// The named streams of a kernel. Their numbers decide when the launched graph runs.
constexpr uint64_t kTail = uint64_t{1} << 56, kFireAndForget = uint64_t{2} << 56, kSibling = uint64_t{3} << 56;
constexpr size_t kMostFired = 120, kMostTails = 255;
// A launched graph runs nested in its launcher, on the same thread, so the depth is limited.
constexpr unsigned kDeepest = 1000;

thread_local GraphRun* currentRun = nullptr;

class AsCurrent {
 public:
  explicit AsCurrent(GraphRun* run) : before_(std::exchange(currentRun, run)) {}
  ~AsCurrent() { currentRun = before_; }

 private:
  GraphRun* const before_;
};

bool mustStop(const Stream& stream) { return stream.context->isEnding || stream.context->error != CUDA_SUCCESS; }

bool isPageable(CUmemorytype type, const void* host, CUdeviceptr device) {
  return state().allocations.covering(type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device) ==
         nullptr;
}

// Runs the uploaded nodes in order. `tails` gets the graphs that their kernels launched to run afterwards.
CUresult runOnce(PendingLaunch launch, const std::shared_ptr<Stream>& stream, unsigned depth,
                 std::deque<PendingLaunch>& tails) {
  const auto exec = launch.take();
  GraphRun run(exec, depth);
  run.begin(true);
  for (auto& work : exec->uploaded()) {
    if (mustStop(*stream)) return CUDA_SUCCESS;
    Operation operation;
    // A resource of the node was freed. Hardware notices only when it accesses the resource.
    if (work->prepare(stream, operation) != CUDA_SUCCESS) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (auto& dependency : operation.after) dependency.stream->waitFor(dependency.sequence);
    if (operation.queued) operation.queued(stream, stream->running());
    if (const CUresult status = run.runNode(stream, operation.run)) return status;
  }
  tails = run.takeTails();
  return CUDA_SUCCESS;
}

CUresult runAll(std::deque<PendingLaunch> open, const std::shared_ptr<Stream>& stream, unsigned depth) {
  while (!open.empty() && !mustStop(*stream)) {
    PendingLaunch first = std::move(open.front());
    open.pop_front();
    std::deque<PendingLaunch> tails;
    if (const CUresult status = runOnce(std::move(first), stream, depth, tails)) return status;
    open.insert(open.begin(), std::make_move_iterator(tails.begin()), std::make_move_iterator(tails.end()));
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUgraphInstantiateResult checkForKernels(const Work& work, const std::shared_ptr<Context>& context) {
  if (work.type() > CU_GRAPH_NODE_TYPE_MEMSET && work.type() != CU_GRAPH_NODE_TYPE_GRAPH)
    return CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
  if (const auto* copy = dynamic_cast<const CopyWork*>(&work)) {
    const CUDA_MEMCPY3D& of = copy->parameters;
    if (of.srcMemoryType == CU_MEMORYTYPE_ARRAY || of.dstMemoryType == CU_MEMORYTYPE_ARRAY)
      return CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    // An H200 returns this code for pageable memory.
    if (isPageable(of.srcMemoryType, of.srcHost, of.srcDevice) ||
        isPageable(of.dstMemoryType, of.dstHost, of.dstDevice)) {
      return CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
    }
  }
  if (context && work.context() && work.context() != context) return CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
  return CUDA_GRAPH_INSTANTIATE_SUCCESS;
}

bool KernelLaunches::claim(bool isOwnTail) {
  std::lock_guard lock(mutex_);
  if (isClaimed_ || running_ != (isOwnTail ? 1 : 0)) return false;
  isClaimed_ = true;
  return true;
}

void KernelLaunches::unclaim() {
  std::lock_guard lock(mutex_);
  isClaimed_ = false;
}

void KernelLaunches::begin(bool isClaimed) {
  std::lock_guard lock(mutex_);
  ++running_;
  if (isClaimed) isClaimed_ = false;
}

void KernelLaunches::end() {
  std::lock_guard lock(mutex_);
  --running_;
}

PendingLaunch::~PendingLaunch() {
  if (exec_) exec_->byKernels.unclaim();
}

GraphRun* GraphRun::current() { return currentRun; }

void GraphRun::begin(bool isClaimed) {
  exec_->byKernels.begin(isClaimed);
  isRunning_ = true;
}

void GraphRun::end() {
  if (std::exchange(isRunning_, false)) exec_->byKernels.end();
}

uint64_t GraphRun::handle() const { return exec_->isForKernels() ? exec_->number : 0; }

unsigned GraphRun::launch(const Context& context, uint64_t handle, uint64_t how, const char*& fault) {
  if (handle == 0 || (how != kTail && how != kFireAndForget && how != kSibling)) return kInvalidValue;
  // The program may have destroyed this graph's handle since. A launch in progress still finds its own graph.
  const auto exec = handle == exec_->number ? exec_ : executables().find(reinterpret_cast<CUgraphExec>(handle));
  if (!exec || !exec->isForKernels()) fault = "a launch of what is no executable graph for kernels";
  else if (exec->context() && exec->context().get() != &context) fault = "a launch of a graph of another context";
  if (fault != nullptr) return kInvalidValue;
  std::lock_guard lock(mutex_);
  const bool isTail = how == kTail;
  if (isTail ? tails_.size() >= kMostTails : countOfFired_ >= kMostFired || depth_ >= kDeepest) return kInvalidValue;
  if (!exec->isUploaded() || !exec->byKernels.claim(isTail && exec == exec_)) return kInvalidValue;
  if (!isTail) ++countOfFired_;
  (isTail ? tails_ : fired_).emplace_back(exec);
  return kSuccess;
}

std::deque<PendingLaunch> GraphRun::takeTails() {
  end();
  std::lock_guard lock(mutex_);
  return std::exchange(tails_, {});
}

CUresult GraphRun::runNode(const std::shared_ptr<Stream>& stream, const std::function<CUresult()>& node) {
  {
    const AsCurrent current(this);
    if (const CUresult status = node()) return status;
  }
  std::unique_lock lock(mutex_);
  auto fired = std::exchange(fired_, {});
  lock.unlock();
  return runAll(std::move(fired), stream, depth_ + 1);
}

CUresult GraphRun::runTails(const std::shared_ptr<Stream>& stream) { return runAll(takeTails(), stream, depth_); }

}  // namespace shoal

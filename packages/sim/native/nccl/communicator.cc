#include "communicator.h"

#include <cstring>
#include <shared_mutex>
#include <unordered_map>

#include "identifier.h"
#include "problem.h"
#include "window.h"

namespace shoal::nccl {

namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Communicator>> communicators;
  uint64_t next = (uint64_t{8} << 44) + 0x1000;  // handles are never reused
};

Registry& registry() {
  static Registry* shared = new Registry;
  return *shared;
}

}  // namespace

std::shared_ptr<Communicator> Communicator::create(const Place& place, const Config& config) {
  auto communicator = std::make_shared<Communicator>(place, config);
  Registry& known = registry();
  std::unique_lock lock(known.mutex);
  communicator->handle_ = known.next;
  known.next += 16;
  known.communicators[communicator->handle_] = communicator;
  return communicator;
}

Communicator::Communicator(const Place& place, const Config& config_)
    : device(place.device), context(place.context), config(config_), holdsPrimaryContext_(place.holdsPrimaryContext) {}

ncclResult_t Communicator::find(ncclComm_t handle, const char* function, std::shared_ptr<Communicator>& communicator) {
  Registry& known = registry();
  std::shared_lock lock(known.mutex);
  auto found = known.communicators.find(reinterpret_cast<uint64_t>(handle));
  if (found == known.communicators.end()) {
    return problem(ncclInvalidArgument, "%s: %p is not a communicator, or it has been destroyed", function,
                   static_cast<void*>(handle));
  }
  communicator = found->second;
  return ncclSuccess;
}

ncclResult_t Communicator::findSettled(ncclComm_t handle, const char* function,
                                       std::shared_ptr<Communicator>& communicator) {
  if (const ncclResult_t result = find(handle, function, communicator)) return result;
  if (communicator->asyncError() == ncclInProgress) {
    return problem(ncclInvalidArgument,
                   "%s: the communicator is still being worked on: ncclCommGetAsyncError tells when that has ended",
                   function);
  }
  return ncclSuccess;
}

ncclResult_t Communicator::findSound(ncclComm_t handle, const char* function,
                                     std::shared_ptr<Communicator>& communicator) {
  if (const ncclResult_t result = findSettled(handle, function, communicator)) return result;
  if (const ncclResult_t failed = communicator->asyncError()) {
    return problem(failed, "%s: the communicator has failed: %s", function, communicator->failureText().c_str());
  }
  return ncclSuccess;
}

ncclResult_t Communicator::findReady(ncclComm_t handle, const char* function,
                                     std::shared_ptr<Communicator>& communicator) {
  if (const ncclResult_t result = findSettled(handle, function, communicator)) return result;
  switch (communicator->state()) {
    case State::finalised: return problem(ncclInvalidUsage, "%s: the communicator has been finalized", function);
    case State::revoked: return problem(ncclInvalidUsage, "%s: the communicator has been revoked", function);
    default: break;
  }
  if (communicator->isSuspended()) return problem(ncclInvalidUsage, "%s: the communicator is suspended", function);
  return findSound(handle, function, communicator);
}

ncclResult_t Communicator::injectFault(const char* function, bool isOperation) {
  ncclResult_t code = ncclSuccess;
  Endpoint& endpoint = *endpoint_;
  const auto isOver = [&] { return isOperation ? endpoint.isStopped() : endpoint.isAborted(); };
  switch (shoal::nccl::injectFault(function, endpoint.rank, isOver, code)) {
    case FaultKind::none: return ncclSuccess;
    case FaultKind::hang: hang(isOver); return ncclInternalError;  // the caller of an aborted operation sees no error
    case FaultKind::error: break;
  }
  const std::string text =
      "rank " + std::to_string(endpoint.rank) + " has met an error in " + function + " that was asked for";
  fail(code, text);
  endpoint.fail(ncclRemoteError, text);
  return problem(code, "%s", text.c_str());
}

ncclResult_t Communicator::findParent(ncclComm_t handle, const char* function,
                                      std::shared_ptr<Communicator>& communicator) {
  if (const ncclResult_t result = findSettled(handle, function, communicator)) return result;
  if (communicator->state() == State::revoked) return ncclSuccess;
  return findReady(handle, function, communicator);
}

ncclResult_t Communicator::attach(std::shared_ptr<Endpoint> endpoint, const char* function, int identifiers) {
  {
    std::lock_guard lock(mutex_);
    endpoint_ = std::move(endpoint);
    if (isAborted_) endpoint_->abort();
  }
  if (const ncclResult_t result = endpoint_->attach(device, identifiers)) return result;
  if (function != nullptr) {
    if (const ncclResult_t result = injectFault(function)) return result;
  }
  endpoint_->arrive();
  return ncclSuccess;
}

ncclResult_t Communicator::join(std::shared_ptr<Endpoint> endpoint, const char* function, int identifiers) {
  if (const ncclResult_t result = attach(std::move(endpoint), function, identifiers)) return result;
  return endpoint_->waitForAll();
}

void Communicator::settle(ncclResult_t result) {
  // A blocking caller gets the error as the result of its call. The communicator itself only fails if it was never
  // ready.
  if (result != ncclSuccess && (state_ == State::initialising || !config.isBlocking)) fail(result, lastProblem());
  if (state_ == State::initialising) state_ = result == ncclSuccess ? State::ready : State::failed;
  --jobs_;
}

void Communicator::forgo() {
  if (state_ == State::initialising) state_ = State::failed;
}

void Communicator::fail(ncclResult_t result, const std::string& text) {
  std::lock_guard lock(mutex_);
  int none = ncclSuccess;
  if (asyncError_.compare_exchange_strong(none, result)) failureText_ = text;
}

void Communicator::breakOff(ncclResult_t result) {
  const std::string text = "rank " + std::to_string(rank()) + " could not queue its part of a group: " + lastProblem();
  fail(result, text);
  endpoint_->fail(ncclRemoteError, text);
}

std::string Communicator::failureText() {
  std::lock_guard lock(mutex_);
  if (asyncError_ != ncclSuccess) return failureText_;
  return endpoint_ == nullptr ? "" : endpoint_->segment->control().failureText;
}

ncclResult_t Communicator::finalise() {
  waitForBatches();
  waitForGraphs();
  if (const ncclResult_t result = injectFault("ncclCommFinalize")) return result;
  state_ = State::finalised;
  return static_cast<ncclResult_t>(asyncError_.load());
}

void Communicator::revoke() {
  endpoint_->revoke();
  {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  waitForBatches();
  state_ = State::revoked;
  asyncError_ = ncclSuccess;
}

void Communicator::end(bool aborts) {
  std::shared_ptr<Endpoint> endpoint;
  {
    std::lock_guard lock(mutex_);
    isAborted_ = isAborted_ || aborts;
    endpoint = endpoint_;
    if (aborts && endpoint != nullptr) endpoint->abort();
    changed_.notify_all();
    // An abort during a destroy only ends the waiting of the destroy.
    if (isEnding_) return;
    isEnding_ = true;
  }
  if (!aborts) waitForBatches();
  waitForGraphs();
  if (!aborts && endpoint != nullptr && state_ != State::failed) injectFault("ncclCommDestroy");
  {
    Registry& known = registry();
    std::unique_lock lock(known.mutex);
    known.communicators.erase(handle_);
  }
  std::set<std::shared_ptr<Window>> windows;
  {
    std::lock_guard lock(mutex_);
    windows.swap(windows_);
  }
  for (auto& window : windows) window->withdraw();
  windows.clear();
  for (;;) {
    ncclWindow_t left = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (!deviceMemory_.empty()) left = deviceMemory_.begin()->first;
    }
    if (left == nullptr) break;
    removeDeviceMemory(left);
  }
  if (isSuspended_) endpoint->segment->control().suspended.fetch_sub(1);
  if (endpoint != nullptr) endpoint->leave(isAborted_ ? RankState::aborted : RankState::left);
  state_ = State::gone;
  if (holdsPrimaryContext_) {
    holdsPrimaryContext_ = false;
    cuDevicePrimaryCtxRelease_v2(device);
  }
}

ncclResult_t Communicator::asyncError() {
  if (jobs_ > 0 || state_ == State::initialising) return ncclInProgress;
  if (settlesAt_ != 0) {
    if (nanosecondsNow() < settlesAt_) return ncclInProgress;
    settlesAt_ = 0;
  }
  if (const int own = asyncError_.load()) return static_cast<ncclResult_t>(own);
  if (state_ != State::ready) return ncclSuccess;
  if (const ncclResult_t failed = endpoint_->failure()) return failed;
  const int killed = endpoint_->findKilled();
  if (killed < 0) return ncclSuccess;
  return endpoint_->fail(ncclRemoteError, "rank " + std::to_string(killed) + " ended without leaving the communicator");
}

ncclResult_t Communicator::suspend() {
  waitForBatches();
  isSuspended_ = true;
  // All ranks share the staging memory, so the last rank to suspend releases it.
  Control& control = endpoint_->segment->control();
  if (control.suspended.fetch_add(1) + 1 == static_cast<uint32_t>(ranks())) endpoint_->segment->releaseStaging();
  return ncclSuccess;
}

ncclResult_t Communicator::resume() {
  std::string reason;
  if (!endpoint_->isDirect && !endpoint_->segment->reserveStaging(reason))
    return problem(ncclSystemError, "ncclCommResume: %s", reason.c_str());
  endpoint_->segment->control().suspended.fetch_sub(1);
  isSuspended_ = false;
  // No rank may use the memory before all ranks have resumed.
  const char own = 1;
  char all[kMaxRanks];
  return endpoint_->exchange(&own, sizeof own, all, "ncclCommResume");
}

ncclResult_t Communicator::createPreMulSum(ncclDataType_t type, const void* scalar, ncclScalarResidence_t residence,
                                           int& op) {
  PreMulSum made = {type, 0, nullptr};
  if (residence == ncclScalarHostImmediate) memcpy(&made.scalar, scalar, bytesOf(type));
  else made.address = scalar;
  std::lock_guard lock(mutex_);
  op = nextPreMulSum_++;
  preMulSums_[op] = made;
  return ncclSuccess;
}

ncclResult_t Communicator::destroyPreMulSum(int op) {
  std::lock_guard lock(mutex_);
  if (op >= 0 && op < ncclNumOps)
    return problem(ncclInvalidArgument, "ncclRedOpDestroy: %d is a built-in operation", op);
  if (preMulSums_.erase(op) == 0)
    return problem(ncclInvalidArgument, "ncclRedOpDestroy: %d is not an operation of this communicator", op);
  return ncclSuccess;
}

ncclResult_t Communicator::resolve(int op, ncclDataType_t type, Task& task) {
  switch (op) {
    case ncclSum: task.reducer = Reducer::sum; return ncclSuccess;
    case ncclProd: task.reducer = Reducer::prod; return ncclSuccess;
    case ncclMax: task.reducer = Reducer::max; return ncclSuccess;
    case ncclMin: task.reducer = Reducer::min; return ncclSuccess;
    case ncclAvg: task.reducer = Reducer::avg; return ncclSuccess;
    default: break;
  }
  std::lock_guard lock(mutex_);
  auto found = preMulSums_.find(op);
  if (found == preMulSums_.end())
    return problem(ncclInvalidArgument, "%s: %d is not a reduction operation", nameOf(task.kind), op);
  if (found->second.type != type) {
    return problem(ncclInvalidArgument, "%s: the operation was made for data type %d, not %d", nameOf(task.kind),
                   found->second.type, type);
  }
  task.reducer = Reducer::preMulSum;
  task.scalar = found->second.scalar;
  task.scalarAddress = found->second.address;
  return ncclSuccess;
}

ncclResult_t Communicator::makeGrowIdentifier(ncclUniqueId& id) {
  std::lock_guard lock(mutex_);
  if (const ncclResult_t result = makeIdentifier(id)) return result;
  Identifier made;
  if (const ncclResult_t result = readIdentifier(id, made)) return result;
  growKeys_.insert(made.key);
  return ncclSuccess;
}

bool Communicator::isGrowIdentifier(uint64_t key) {
  std::lock_guard lock(mutex_);
  return growKeys_.count(key) != 0;
}

void Communicator::consumeGrowIdentifier() {
  std::lock_guard lock(mutex_);
  growKeys_.clear();
}

uint32_t Communicator::countShrinks(const std::set<int>& excluded) {
  std::lock_guard lock(mutex_);
  return shrinks_[excluded]++;
}

void Communicator::addWindow(const std::shared_ptr<Window>& window) {
  std::lock_guard lock(mutex_);
  windows_.insert(window);
}

void Communicator::removeWindow(const std::shared_ptr<Window>& window) {
  window->withdraw();
  std::lock_guard lock(mutex_);
  windows_.erase(window);
}

void Communicator::addDeviceMemory(const std::shared_ptr<Window>& window, void* memory) {
  std::lock_guard lock(mutex_);
  deviceMemory_[window->handle()] = {window, memory};
}

bool Communicator::removeDeviceMemory(ncclWindow_t window) {
  std::pair<std::shared_ptr<Window>, void*> gone;
  {
    std::lock_guard lock(mutex_);
    auto found = deviceMemory_.find(window);
    if (found == deviceMemory_.end()) return false;
    gone = std::move(found->second);
    deviceMemory_.erase(found);
  }
  gone.first->withdraw();
  gone.first.reset();
  ncclMemFree(gone.second);
  return true;
}

uint64_t Communicator::deviceMemoryBytes() {
  std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (auto& [handle, made] : deviceMemory_) bytes += made.first->bytes;
  return bytes;
}

std::shared_ptr<Window> Communicator::windowAround(const void* address, size_t bytes) {
  std::lock_guard lock(mutex_);
  for (auto& window : windows_) {
    if (window->covers(address, bytes)) return window;
  }
  return nullptr;
}

ncclResult_t Communicator::registerBuffer(const void*, size_t, void** handle) {
  std::lock_guard lock(mutex_);
  *handle = reinterpret_cast<void*>(nextRegistration_++ * 16);
  registrations_.insert(*handle);
  return ncclSuccess;
}

ncclResult_t Communicator::deregisterBuffer(void* handle) {
  std::lock_guard lock(mutex_);
  if (registrations_.erase(handle) == 0)
    return problem(ncclInvalidArgument, "ncclCommDeregister: %p is not a registration", handle);
  return ncclSuccess;
}

}  // namespace shoal::nccl

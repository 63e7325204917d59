#include "context.h"

#include <algorithm>

#include "device.h"
#include "event.h"
#include "green.h"
#include "pool/pool.h"
#include "report.h"
#include "state.h"
#include "stream.h"
#include "thread.h"

namespace shoal {

namespace {
std::atomic<unsigned long long> nextContextId{1};

// Other source files register their handlers while the library loads.
std::vector<void (*)(const Context&)>& destroyHandlers() {
  static auto* list = new std::vector<void (*)(const Context&)>;
  return *list;
}
}  // namespace

unsigned long long newContextId() { return nextContextId.fetch_add(1); }

std::shared_ptr<Context> Context::create(Device& device, bool isPrimary, unsigned flags) {
  auto context = std::make_shared<Context>(device, isPrimary, flags);
  context->handle_ = state().contexts.reserve();
  state().contexts.put(context->handle_, context);
  return context;
}

Context::Context(Device& device, bool isPrimary, unsigned flags)
    : device(device), isPrimary(isPrimary), id(nextContextId.fetch_add(1)), flags(flags) {
  resetSettings();
}

void Context::resetSettings() {
  std::lock_guard lock(settingsMutex);
  const size_t defaults[10] = {1024, 1 << 20, 8 << 20, 0, 2048, 64, 0, 232448, 0, 0};
  std::copy(std::begin(defaults), std::end(defaults), limits);
  cacheConfig = 0;
  sharedConfig = 0;
  peers.clear();
}

void Context::activate(unsigned newFlags) {
  id = nextContextId.fetch_add(1);
  flags = newFlags;
  error = CUDA_SUCCESS;
  resetSettings();
  alive = true;
}

CUresult Context::status() const {
  if (!alive.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return static_cast<CUresult>(error.load(std::memory_order_acquire));
}

void Context::fail(CUresult result) {
  int none = CUDA_SUCCESS;
  if (error.compare_exchange_strong(none, result)) reportFailure(*this, result);
}

std::shared_ptr<Stream> Context::defaultStream() {
  {
    std::lock_guard lock(streamsMutex_);
    if (default_) return default_;
  }
  auto created = Stream::create(shared_from_this(), StreamKind::legacyDefault, 0);
  std::lock_guard lock(streamsMutex_);
  if (!default_) default_ = created;
  return default_;
}

std::shared_ptr<Stream> Context::perThreadDefaultStream() {
  auto& own = threadState().defaultStreams;
  own.erase(std::remove_if(own.begin(), own.end(), [](auto& entry) { return entry.stream->contextDestroyed.load(); }),
            own.end());
  for (auto& entry : own) {
    if (entry.contextId == id) return entry.stream;
  }
  own.push_back({id, Stream::create(shared_from_this(), StreamKind::perThreadDefault, 0)});
  return own.back().stream;
}

void Context::add(const std::shared_ptr<Stream>& stream) {
  std::lock_guard lock(streamsMutex_);
  if (streams_.size() >= cleanAt_) {
    streams_.erase(std::remove_if(streams_.begin(), streams_.end(), [](auto& weak) { return weak.expired(); }),
                   streams_.end());
    cleanAt_ = 2 * streams_.size() + 16;  // doubles, so that adding many streams does not scan all of them each time
  }
  streams_.push_back(stream);
}

std::vector<std::shared_ptr<Stream>> Context::streams() {
  std::lock_guard lock(streamsMutex_);
  std::vector<std::shared_ptr<Stream>> list;
  for (auto& weak : streams_) {
    if (auto stream = weak.lock()) list.push_back(std::move(stream));
  }
  return list;
}

CUresult Context::synchronize() {
  if (const CUresult failed = status()) return failed;
  std::vector<Dependency> all;
  {
    std::lock_guard order(queueMutex);
    for (auto& stream : streams()) all.push_back({stream, stream->enqueued()});
  }
  for (auto& dependency : all) dependency.stream->waitFor(dependency.sequence);
  trimPoolsAfterWaiting();
  return status();
}

void Context::whenDestroyed(void (*forget)(const Context&)) { destroyHandlers().push_back(forget); }

void Context::destroy() {
  isEnding = true;
  auto all = streams();
  alive = false;
  for (auto& stream : all) {
    stream->contextDestroyed = true;
    stream->close();
  }
  for (auto& stream : all) stream->waitFor(stream->enqueued());
  {
    std::lock_guard lock(streamsMutex_);
    streams_.clear();
    default_.reset();
    marks_.reset();
    gates_.clear();
  }
  for (auto& event : state().events.all()) {
    if (event->context.get() == this) event->contextDestroyed = true;
  }
  for (auto* forget : destroyHandlers()) forget(*this);
  state().allocations.removeAllOf(this);
  for (auto& other : state().contexts.all()) {
    std::lock_guard lock(other->settingsMutex);
    other->peers.erase(this);
  }
  isEnding = false;
}

}  // namespace shoal

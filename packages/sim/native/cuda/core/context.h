// A context: the owner of streams, events and memory on one device.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "shoal/cuda.h"
#include "stream.h"

namespace shoal {

class Device;
class Event;
class GreenContext;
class Stream;

class Context : public std::enable_shared_from_this<Context> {
 public:
  static std::shared_ptr<Context> create(Device& device, bool isPrimary, unsigned flags);
  Context(Device& device, bool isPrimary, unsigned flags);

  CUcontext handle() const { return reinterpret_cast<CUcontext>(handle_); }

  // Makes a primary context usable, also again after a reset.
  void activate(unsigned newFlags);
  // Ends all work and frees everything that belongs to the context. A primary context may be activated again.
  void destroy();
  // Registers a function that is called with each destroyed context after its work has ended. It frees state that other
  // source files keep per context.
  static void whenDestroyed(void (*forget)(const Context&));

  // CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED or the error that made the context unusable.
  CUresult status() const;
  // Only the first error is kept.
  void fail(CUresult error);

  std::shared_ptr<Stream> defaultStream();           // the legacy default stream
  std::shared_ptr<Stream> perThreadDefaultStream();  // of the calling thread
  void add(const std::shared_ptr<Stream>& stream);
  std::vector<std::shared_ptr<Stream>> streams();  // only streams that are alive
  CUresult synchronize();
  // Records an event after all work of the context, or of one green context in it.
  CUresult record(const std::shared_ptr<Event>& event, const GreenContext* green);
  // Makes all later work wait for the event, including work in streams that are created later.
  CUresult waitFor(const std::shared_ptr<Event>& event, const GreenContext* green);
  // Makes a new stream wait for the events that its context waits for.
  void hold(Stream& stream);

  Device& device;
  const bool isPrimary;
  std::atomic<unsigned long long> id;  // a primary context gets a new id at each activation
  std::atomic<unsigned> flags;
  std::atomic<bool> alive{true};
  std::atomic<bool> isEnding{false};     // waits that may never be satisfied stop
  std::atomic<int> blockingCaptures{0};  // capturing streams that the legacy default stream would wait for
  std::atomic<int> error{CUDA_SUCCESS};

  // Held while work is queued on any stream, so that all streams see one order relative to the default stream.
  std::mutex queueMutex;

  std::mutex settingsMutex;
  size_t limits[10];
  CUfunc_cache cacheConfig = 0;
  CUsharedconfig sharedConfig = 0;
  std::set<const Context*> peers;

 private:
  friend class Stream;
  uint64_t handle_ = 0;
  std::mutex streamsMutex_;
  std::shared_ptr<Stream> default_;
  std::vector<std::weak_ptr<Stream>> streams_;
  size_t cleanAt_ = 16;
  std::shared_ptr<Stream> marks_;  // executes work that belongs to no single stream
  std::vector<std::pair<Dependency, const GreenContext*>> gates_;
  void resetSettings();
};

inline bool areFlagsValid(unsigned flags) {
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 &&
         (scheduling == 0 || scheduling == 1 || scheduling == 2 || scheduling == 4);
}

// The context stack of the calling thread; the last one is current.
std::vector<std::shared_ptr<Context>>& contextStack();

}  // namespace shoal

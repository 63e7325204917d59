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

  // Makes a primary context usable (again).
  void activate(unsigned newFlags);
  // Ends all work and frees all that belongs to the context; a primary context may be activated again.
  void destroy();
  // Called with each context that is destroyed, once its work has ended: what others keep in it goes first.
  static void whenDestroyed(void (*forget)(const Context&));

  // CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED or the error that made the context unusable.
  CUresult status() const;
  // The first error stays.
  void fail(CUresult error);

  std::shared_ptr<Stream> defaultStream();           // the legacy default stream
  std::shared_ptr<Stream> perThreadDefaultStream();  // the calling thread's own
  void add(const std::shared_ptr<Stream>& stream);
  std::vector<std::shared_ptr<Stream>> streams();  // those alive
  CUresult synchronize();
  // Marks the end of all work of the context, or of one green context in it.
  CUresult record(const std::shared_ptr<Event>& event, const GreenContext* green);
  // All work that is queued from now on waits for the event, in streams that are made later too.
  CUresult waitFor(const std::shared_ptr<Event>& event, const GreenContext* green);
  // Has a new stream wait for what its context waits for.
  void hold(Stream& stream);

  Device& device;
  const bool isPrimary;
  std::atomic<unsigned long long> id;  // a primary context gets a new one each time it is activated
  std::atomic<unsigned> flags;
  std::atomic<bool> alive{true};
  std::atomic<bool> isEnding{false};     // waits that nobody may ever satisfy give up
  std::atomic<int> blockingCaptures{0};  // streams that are captured and that the legacy default stream would wait for
  std::atomic<int> error{CUDA_SUCCESS};

  // Held while work is queued on any stream, so that all streams agree with the default stream on one order.
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
  std::shared_ptr<Stream> marks_;  // carries out what belongs to no one stream
  std::vector<std::pair<Dependency, const GreenContext*>> gates_;
  void resetSettings();
};

inline bool areFlagsValid(unsigned flags) {
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 &&
         (scheduling == 0 || scheduling == 1 || scheduling == 2 || scheduling == 4);
}

// The contexts of the calling thread, the current one last.
std::vector<std::shared_ptr<Context>>& contextStack();

}  // namespace shoal

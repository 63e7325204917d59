// A green context: a subset of a device's multiprocessors, in the device's primary context.
#pragma once

#include <atomic>
#include <memory>

#include "handles.h"
#include "multiprocessors.h"
#include "shoal/cuda.h"

namespace shoal {

class Context;

class GreenContext {
 public:
  GreenContext(std::shared_ptr<Context> primary, const Multiprocessors& multiprocessors, unsigned long long id)
      : primary(std::move(primary)), multiprocessors(multiprocessors), id(id) {}

  CUgreenCtx handle() const { return reinterpret_cast<CUgreenCtx>(number); }
  CUcontext context() const { return reinterpret_cast<CUcontext>(contextNumber); }

  const std::shared_ptr<Context> primary;
  const Multiprocessors multiprocessors;
  const unsigned long long id;
  uint64_t number = 0;         // the handle
  uint64_t contextNumber = 0;  // the handle as a context
  std::atomic<bool> isDestroyed{false};
};

// Looks up both kinds of handle.
HandleTable<GreenContext>& greenContexts();
// The green context behind a context handle; null if the handle is of an ordinary context.
std::shared_ptr<GreenContext> greenOf(CUcontext handle);
// The green context that is current on the calling thread; null if there is none.
std::shared_ptr<GreenContext> currentGreen();
unsigned long long newContextId();

}  // namespace shoal

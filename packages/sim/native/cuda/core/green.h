// A green context: a part of a device's multiprocessors, in the device's primary context.
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
  uint64_t number = 0;         // of the handle
  uint64_t contextNumber = 0;  // of the handle as a context
  std::atomic<bool> isDestroyed{false};
};

// By both kinds of handle.
HandleTable<GreenContext>& greenContexts();
// What a context's handle is of, where it is that of a green context; else null.
std::shared_ptr<GreenContext> greenOf(CUcontext handle);
// Of the calling thread's current context.
std::shared_ptr<GreenContext> currentGreen();
unsigned long long newContextId();

}  // namespace shoal

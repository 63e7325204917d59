// What only the software device has: its description, faults and delays on demand, and work for a stream.
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/allocation.h"
#include "core/context.h"
#include "core/device.h"
#include "core/entry.h"
#include "core/stream.h"

using namespace shoal;

extern "C" const char* shoalSimDescribe(void) { return "Shoal software device: the CUDA driver's C ABI on host memory, no GPU"; }

CUresult shoalSimInjectError(int device, int code) {
  return initialised([&]() -> CUresult {
    Device* found = nullptr;
    if (const CUresult status = findDevice(device, found)) return status;
    if (code < 0) return CUDA_ERROR_INVALID_VALUE;
    found->error = code;
    for (auto& context : state().contexts.all()) {
      if (&context->device == found && context->alive) context->error = code;
    }
    return CUDA_SUCCESS;
  });
}

CUresult shoalSimStreamDelay(CUstream handle, uint64_t nanoseconds) {
  return onStream(handle, false, [&](auto& stream, auto&) {
    Operation operation;
    operation.run = [nanoseconds, context = stream->context] {
      constexpr uint64_t slice = 1000000;
      timespec end;
      clock_gettime(CLOCK_MONOTONIC, &end);
      const uint64_t ends = static_cast<uint64_t>(end.tv_sec) * 1000000000u + static_cast<uint64_t>(end.tv_nsec) + nanoseconds;
      for (;;) {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        const uint64_t at = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
        if (at >= ends || context->isEnding || context->error != CUDA_SUCCESS) return CUDA_SUCCESS;
        const timespec nap = {0, static_cast<long>(std::min(slice, ends - at))};
        nanosleep(&nap, nullptr);
      }
    };
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

CUresult shoalSimEnqueue(CUstream handle, CUresult (*run)(void*), void (*discard)(void*), void* userData, const ShoalSimRange* ranges,
                         size_t rangeCount) {
  return onStream(handle, false, [&](auto& stream, auto& context) -> CUresult {
    if (run == nullptr || (rangeCount != 0 && ranges == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<MemoryRange> read, written;
    for (size_t index = 0; index < rangeCount; ++index) {
      const ShoalSimRange& wanted = ranges[index];
      const Use use{*context, wanted.isWritten != 0 ? Access::write : Access::read, true};
      MemoryRange range;
      if (const CUresult status = checkKnownRange(use, wanted.address, wanted.length, range)) return status;
      (wanted.isWritten != 0 ? written : read).push_back(std::move(range));
    }
    Operation operation;
    operation.run = [run, discard, userData, read = std::move(read), written = std::move(written)] {
      Held held;
      CUresult result = CUDA_SUCCESS;
      for (auto* kind : {&read, &written}) {
        for (auto& each : *kind) result = result != CUDA_SUCCESS ? result : held.add(each);
      }
      if (result != CUDA_SUCCESS) {
        if (discard != nullptr) discard(userData);
        return result;
      }
      result = run(userData);
      for (auto& each : written) result = result != CUDA_SUCCESS ? result : held.wrote(each, 0, each.length);
      return result;
    };
    if (discard != nullptr) operation.discard = [discard, userData] { discard(userData); };
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

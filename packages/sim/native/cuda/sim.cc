// Functions that only the software device has: its description, its leak check, injected faults and delays, and stream
// work for NCCL and NVSHMEM.
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
#include "core/workers.h"
#include "graph/capture.h"

using namespace shoal;

extern "C" const char* shoalSimDescribe(void) {
  return "Shoal software device: the CUDA driver's C ABI on host memory, no GPU";
}

size_t shoalSimLeft(char* text, size_t bytes) {
  const std::string left = describeLeft();
  if (text != nullptr && bytes > 0) text[left.copy(text, bytes - 1)] = '\0';
  return left.size() + 1;
}

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
      const uint64_t ends =
          static_cast<uint64_t>(end.tv_sec) * 1000000000u + static_cast<uint64_t>(end.tv_nsec) + nanoseconds;
      for (;;) {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        const uint64_t at = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
        if (at >= ends || context->isEnding || context->error != CUDA_SUCCESS) return CUDA_SUCCESS;
        const timespec interval = {0, static_cast<long>(std::min(slice, ends - at))};
        nanosleep(&interval, nullptr);
      }
    };
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

namespace {

using Run = CUresult (*)(void*);
using Callback = void (*)(void*);

struct Ranges {
  std::vector<MemoryRange> read, written;

  CUresult check(Context& context, const ShoalSimRange* ranges, size_t count) {
    for (size_t index = 0; index < count; ++index) {
      const ShoalSimRange& wanted = ranges[index];
      const Use use{context, wanted.isWritten != 0 ? Access::write : Access::read, true};
      MemoryRange range;
      if (const CUresult status = checkKnownRange(use, wanted.address, wanted.length, range)) return status;
      (wanted.isWritten != 0 ? written : read).push_back(std::move(range));
    }
    return CUDA_SUCCESS;
  }
};

Operation deviceWork(Run run, Callback discard, void* userData, Ranges ranges) {
  Operation operation;
  operation.run = [run, discard, userData, ranges = std::move(ranges)] {
    Held held;
    CUresult result = CUDA_SUCCESS;
    for (auto* kind : {&ranges.read, &ranges.written}) {
      for (auto& each : *kind) result = result != CUDA_SUCCESS ? result : held.add(each);
    }
    if (result != CUDA_SUCCESS) {
      if (discard != nullptr) discard(userData);
      return result;
    }
    {
      // The work waits for other ranks and processes.
      const Workers::Waiting waiting;
      result = run(userData);
    }
    for (auto& each : ranges.written) result = result != CUDA_SUCCESS ? result : held.wrote(each, 0, each.length);
    return result;
  };
  if (discard != nullptr) operation.discard = [discard, userData] { discard(userData); };
  return operation;
}

// Work of NCCL and NVSHMEM. On a GPU, this work is kernels.
class DeviceWork : public Work {
 public:
  DeviceWork(std::shared_ptr<Context> owner, void* (*start)(void*), Run run, Callback discard, Callback release,
             void* userData, std::vector<ShoalSimRange> ranges)
      : owner_(std::move(owner)),
        start_(start),
        run_(run),
        discard_(discard),
        release_(release),
        userData_(userData),
        ranges_(std::move(ranges)) {}
  ~DeviceWork() override {
    if (isOwner) release_(userData_);
  }
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_KERNEL; }
  std::shared_ptr<Context> context() const override { return owner_; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override {
    Ranges ranges;
    if (const CUresult status = ranges.check(*owner_, ranges_.data(), ranges_.size())) return status;
    if (!stream) return CUDA_SUCCESS;
    void* data = start_(userData_);
    if (data == nullptr) return CUDA_ERROR_LAUNCH_FAILED;
    operation = deviceWork(run_, discard_, data, std::move(ranges));
    return CUDA_SUCCESS;
  }
  bool isOwner = false;  // set after the node was added

 private:
  const std::shared_ptr<Context> owner_;
  void* (*const start_)(void*);
  const Run run_;
  const Callback discard_, release_;
  void* const userData_;
  const std::vector<ShoalSimRange> ranges_;
};

}  // namespace

CUresult shoalSimEnqueue(CUstream handle, CUresult (*run)(void*), void (*discard)(void*), void* userData,
                         const ShoalSimRange* ranges, size_t rangeCount) {
  return onStream(handle, false, [&](auto& stream, auto& context) -> CUresult {
    if (run == nullptr || (rangeCount != 0 && ranges == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult status = refuseCaptured(stream)) return status;
    Ranges checked;
    if (const CUresult status = checked.check(*context, ranges, rangeCount)) return status;
    stream->enqueue(deviceWork(run, discard, userData, std::move(checked)));
    return CUDA_SUCCESS;
  });
}

CUresult shoalSimCapture(CUstream handle, void* (*start)(void*), CUresult (*run)(void*), void (*discard)(void*),
                         void (*release)(void*), void* userData, const ShoalSimRange* ranges, size_t rangeCount) {
  return onStream(handle, false, [&](auto& stream, auto& context) -> CUresult {
    if (start == nullptr || run == nullptr || release == nullptr || (rangeCount != 0 && ranges == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    auto work = std::make_shared<DeviceWork>(context, start, run, discard, release, userData,
                                             std::vector(ranges, ranges + rangeCount));
    const CUresult status = captureWork(stream, work);
    work->isOwner = status == CUDA_SUCCESS;
    return status;
  });
}

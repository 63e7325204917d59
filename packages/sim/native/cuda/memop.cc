// Stream memory operations: a stream writes a word, or waits until a word has a given value.
#include <time.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "core/allocation.h"
#include "core/context.h"
#include "core/entry.h"
#include "core/stream.h"
#include "core/workers.h"
#include "graph/capture.h"
#include "graph/memopwork.h"

using namespace shoal;

namespace {

constexpr unsigned kConditionMask = 3;

template <class Word>
bool isMet(Word seen, Word wanted, unsigned condition) {
  switch (condition) {
    // Compares modulo the word size, so a counter that wraps around still counts as reached.
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::make_signed_t<Word>>(seen - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return seen == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (seen & wanted) != 0;
    default: return static_cast<Word>(~(seen | wanted)) != 0;
  }
}

template <class Word>
CUresult checkWord(Context& context, Access access, CUdeviceptr address, MemoryRange& range) {
  if (address % sizeof(Word) != 0) return CUDA_ERROR_INVALID_VALUE;
  return checkKnownRange({context, access}, address, sizeof(Word), range);
}

using Step = std::function<CUresult()>;

template <class Word>
CUresult prepareWrite(const std::shared_ptr<Context>& context, CUdeviceptr address, Word value, unsigned flags,
                      Step& step) {
  if ((flags & ~CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0) return CUDA_ERROR_INVALID_VALUE;
  MemoryRange range;
  if (const CUresult status = checkWord<Word>(*context, Access::write, address, range)) return status;
  step = [range = std::move(range), value]() -> CUresult {
    Held held;
    if (const CUresult status = held.add(range)) return status;
    __atomic_store_n(reinterpret_cast<Word*>(range.data), value, __ATOMIC_SEQ_CST);
    return held.wrote(range, 0, sizeof value);
  };
  return CUDA_SUCCESS;
}

template <class Word>
CUresult prepareWait(const std::shared_ptr<Context>& context, CUdeviceptr address, Word value, unsigned flags,
                     Step& step) {
  if ((flags & ~(kConditionMask | CU_STREAM_WAIT_VALUE_FLUSH)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  MemoryRange range;
  if (const CUresult status = checkWord<Word>(*context, Access::read, address, range)) return status;
  step = [range = std::move(range), value, condition = flags & kConditionMask, context]() -> CUresult {
    const Workers::Waiting waiting;
    long pause = 1000;
    for (;;) {
      {
        Held held;  // only while reading, so that an unmap does not wait for the value
        if (const CUresult status = held.add(range)) return status;
        if (isMet<Word>(__atomic_load_n(reinterpret_cast<Word*>(range.data), __ATOMIC_SEQ_CST), value, condition))
          break;
      }
      if (context->isEnding || context->error != CUDA_SUCCESS) break;
      const timespec interval = {0, pause};
      nanosleep(&interval, nullptr);
      pause = std::min(pause * 2, 200000L);
    }
    return CUDA_SUCCESS;
  };
  return CUDA_SUCCESS;
}

CUresult prepareOne(const std::shared_ptr<Context>& context, const CUstreamBatchMemOpParams& wanted, Step& step) {
  switch (wanted.operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return prepareWrite<uint32_t>(context, wanted.writeValue.address, wanted.writeValue.value,
                                    wanted.writeValue.flags, step);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return prepareWrite<uint64_t>(context, wanted.writeValue.address, wanted.writeValue.value64,
                                    wanted.writeValue.flags, step);
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return prepareWait<uint32_t>(context, wanted.waitValue.address, wanted.waitValue.value, wanted.waitValue.flags,
                                   step);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return prepareWait<uint64_t>(context, wanted.waitValue.address, wanted.waitValue.value64, wanted.waitValue.flags,
                                   step);
    case CU_STREAM_MEM_OP_BARRIER:
      if (wanted.memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU) return CUDA_ERROR_INVALID_VALUE;
      step = [] { return CUDA_SUCCESS; };  // a barrier: writes of the software device are always visible in order
      return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult batch(CUstream handle, bool perThread, std::vector<CUstreamBatchMemOpParams> operations, unsigned flags) {
  return onStream(handle, perThread, [&](auto& stream, auto& context) -> CUresult {
    if (const CUresult status = checkImplicit(stream)) return status;
    return submit(stream, std::make_shared<BatchWork>(context, std::move(operations), flags));
  });
}

template <class Value>
CUstreamBatchMemOpParams describe(CUstreamBatchMemOpType operation, CUdeviceptr address, Value value, unsigned flags) {
  CUstreamBatchMemOpParams wanted{};
  wanted.writeValue.operation = operation;
  wanted.writeValue.address = address;
  wanted.writeValue.value64 = value;
  wanted.writeValue.flags = flags;
  return wanted;
}

}  // namespace

CUresult BatchWork::prepare(const std::shared_ptr<Stream>&, Operation& operation) const {
  constexpr unsigned kMost = 256;
  if (operations.size() > kMost || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Step> steps;
  for (auto& wanted : operations) {
    Step step;
    if (const CUresult status = prepareOne(owner_, wanted, step)) return status;
    steps.push_back(std::move(step));
  }
  operation.run = [steps = std::move(steps)] {
    CUresult result = CUDA_SUCCESS;
    for (auto& step : steps) result = result != CUDA_SUCCESS ? result : step();
    return result;
  };
  return CUDA_SUCCESS;
}

SHOAL_TWIN(cuStreamWriteValue32_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
           batch(stream, perThread, {describe(CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags)}, 0))
SHOAL_TWIN(cuStreamWriteValue64_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
           batch(stream, perThread, {describe(CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags)}, 0))
SHOAL_TWIN(cuStreamWaitValue32_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
           batch(stream, perThread, {describe(CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags)}, 0))
SHOAL_TWIN(cuStreamWaitValue64_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
           batch(stream, perThread, {describe(CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags)}, 0))
SHOAL_TWIN(cuStreamBatchMemOp_v2, _ptsz,
           (CUstream stream, unsigned int count, CUstreamBatchMemOpParams* paramArray, unsigned int flags),
           paramArray == nullptr || count == 0 ? initialised([] { return CUDA_ERROR_INVALID_VALUE; })
                                               : batch(stream, perThread, {paramArray, paramArray + count}, flags))

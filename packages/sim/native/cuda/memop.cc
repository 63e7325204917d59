// Stream memory operations: a stream writes a word, or waits until a word has a value.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "core/allocation.h"
#include "core/context.h"
#include "core/entry.h"
#include "core/stream.h"

using namespace shoal;

namespace {

constexpr unsigned kConditionMask = 3;

template <class Word>
bool isMet(Word seen, Word wanted, unsigned condition) {
  switch (condition) {
    // Cyclic comparison: a counter that wraps around still counts as reached.
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

template <class Word>
CUresult write(CUstream handle, CUdeviceptr address, Word value, unsigned flags, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if ((flags & ~CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0) return CUDA_ERROR_INVALID_VALUE;
    MemoryRange range;
    if (const CUresult status = checkWord<Word>(*stream->context, Access::write, address, range)) return status;
    Operation operation;
    operation.run = [range = std::move(range), value]() -> CUresult {
      Held held;
      if (const CUresult status = held.add(range)) return status;
      __atomic_store_n(reinterpret_cast<Word*>(range.data), value, __ATOMIC_SEQ_CST);
      return held.wrote(range, 0, sizeof value);
    };
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

template <class Word>
CUresult wait(CUstream handle, CUdeviceptr address, Word value, unsigned flags, bool perThread) {
  return onStream(handle, perThread, [&](auto& stream, auto&) -> CUresult {
    if ((flags & ~(kConditionMask | CU_STREAM_WAIT_VALUE_FLUSH)) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    MemoryRange range;
    if (const CUresult status = checkWord<Word>(*stream->context, Access::read, address, range)) return status;
    Operation operation;
    operation.run = [range = std::move(range), value, condition = flags & kConditionMask, context = stream->context]() -> CUresult {
      long pause = 1000;
      for (;;) {
        {
          Held held;  // only while it looks, so that nobody who takes the memory away waits for the value
          if (const CUresult status = held.add(range)) return status;
          if (isMet<Word>(__atomic_load_n(reinterpret_cast<Word*>(range.data), __ATOMIC_SEQ_CST), value, condition)) break;
        }
        if (context->isEnding || context->error != CUDA_SUCCESS) break;
        const timespec nap = {0, pause};
        nanosleep(&nap, nullptr);
        pause = std::min(pause * 2, 200000L);
      }
      return CUDA_SUCCESS;
    };
    stream->enqueue(std::move(operation));
    return CUDA_SUCCESS;
  });
}

}  // namespace

SHOAL_TWIN(cuStreamWriteValue32_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
           write<uint32_t>(stream, addr, value, flags, perThread))
SHOAL_TWIN(cuStreamWriteValue64_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
           write<uint64_t>(stream, addr, value, flags, perThread))
SHOAL_TWIN(cuStreamWaitValue32_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
           wait<uint32_t>(stream, addr, value, flags, perThread))
SHOAL_TWIN(cuStreamWaitValue64_v2, _ptsz, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
           wait<uint64_t>(stream, addr, value, flags, perThread))

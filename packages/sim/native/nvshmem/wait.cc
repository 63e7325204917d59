// Stream waits: a stream waits until values of this PE's memory, which other PEs change, fulfil a condition.
#include "report.h"
#include "transfer.h"

using namespace shoal::nvshmem;

namespace {

template <class Type>
bool holds(Type found, int comparison, Type wanted) {
  switch (comparison) {
    case NVSHMEM_CMP_EQ: return found == wanted;
    case NVSHMEM_CMP_NE: return found != wanted;
    case NVSHMEM_CMP_GT: return found > wanted;
    case NVSHMEM_CMP_LE: return found <= wanted;
    case NVSHMEM_CMP_LT: return found < wanted;
    case NVSHMEM_CMP_GE: return found >= wanted;
    default: return true;  // an unknown comparison does not wait
  }
}

template <class Type>
struct Wait {
  const char* function;
  Type* variables;
  size_t count;
  const int* status;  // a value with a status other than 0 is skipped
  int comparison;
  Type value;
  const Type* values;  // one per element, or null
};

template <class Type>
void waitOnStream(const Wait<Type>& wanted, cudaStream_t stream) {
  const auto session = require(wanted.function);
  const size_t bytes = wanted.count * sizeof(Type);
  if (wanted.count == 0) return;
  peerAddress(*session, wanted.function, wanted.variables, bytes, session->job->pe);
  std::vector<ShoalSimRange> ranges = {{reinterpret_cast<CUdeviceptr>(wanted.variables), bytes, 0}};
  if (wanted.status != nullptr)
    ranges.push_back({reinterpret_cast<CUdeviceptr>(wanted.status), wanted.count * sizeof(int), 0});
  if (wanted.values != nullptr) ranges.push_back({reinterpret_cast<CUdeviceptr>(wanted.values), bytes, 0});
  auto body = [job = session->job, wanted] {
    const auto isDone = [&] {
      for (size_t index = 0; index < wanted.count; ++index) {
        if (wanted.status != nullptr && wanted.status[index] != 0) continue;
        const Type found = __atomic_load_n(wanted.variables + index, __ATOMIC_SEQ_CST);
        if (!holds(found, wanted.comparison, wanted.values != nullptr ? wanted.values[index] : wanted.value))
          return false;
      }
      return true;
    };
    const uint64_t anybody = job->size == 64 ? ~uint64_t{0} : (uint64_t{1} << job->size) - 1;
    // A plain copy to the address of a peer rings no doorbell, so check regularly.
    constexpr long slice = 1000000;
    return job->waitFor(job->control->pe(job->pe).doorbell, anybody, false, wanted.function, isDone, slice)
               ? CUDA_SUCCESS
               : kAbandoned;
  };
  mustSucceed(*session, enqueue(session, wanted.function, stream, std::move(body), ranges), wanted.function);
}

}  // namespace

#define SHOAL_WAITS(name, Type)                                                                                       \
  void nvshmemx_##name##_wait_until_on_stream(Type* variable, int comparison, Type value, cudaStream_t stream) {      \
    waitOnStream<Type>({"nvshmemx_" #name "_wait_until_on_stream", variable, 1, nullptr, comparison, value, nullptr}, \
                       stream);                                                                                       \
  }                                                                                                                   \
  void nvshmemx_##name##_wait_until_all_on_stream(Type* variables, size_t count, const int* status, int comparison,   \
                                                  Type value, cudaStream_t stream) {                                  \
    waitOnStream<Type>(                                                                                               \
        {"nvshmemx_" #name "_wait_until_all_on_stream", variables, count, status, comparison, value, nullptr},        \
        stream);                                                                                                      \
  }                                                                                                                   \
  void nvshmemx_##name##_wait_until_all_vector_on_stream(Type* variables, size_t count, const int* status,            \
                                                         int comparison, Type* values, cudaStream_t stream) {         \
    waitOnStream<Type>(                                                                                               \
        {"nvshmemx_" #name "_wait_until_all_vector_on_stream", variables, count, status, comparison, 0, values},      \
        stream);                                                                                                      \
  }
SHOAL_NVSHMEM_WAIT_TYPES(SHOAL_WAITS)

void nvshmemx_signal_wait_until_on_stream(uint64_t* address, int comparison, uint64_t value, cudaStream_t stream) {
  waitOnStream<uint64_t>({"nvshmemx_signal_wait_until_on_stream", address, 1, nullptr, comparison, value, nullptr},
                         stream);
}

// Signals, and puts with a signal.
#include "report.h"
#include "transfer.h"

using namespace shoal::nvshmem;

namespace {

void signalOnStream(const char* function, uint64_t* signal, uint64_t value, int operation, int pe, cudaStream_t stream,
                    bool isCall = true) {
  const auto session = require(function);
  auto* address = reinterpret_cast<uint64_t*>(elementAddress(*session, function, signal, sizeof *signal, pe));
  auto body = [job = session->job, address, value, operation, pe] {
    if (operation == NVSHMEM_SIGNAL_SET) __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
    else if (operation == NVSHMEM_SIGNAL_ADD) __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
    job->ring(pe);
    return CUDA_SUCCESS;
  };
  mustSucceed(*session,
              enqueue(session, isCall ? function : "", stream, std::move(body),
                      {{reinterpret_cast<CUdeviceptr>(address), sizeof *address, 1}}),
              function);
}

// The stream runs the put before the signal.
void putAndSignal(const Move& wanted, uint64_t* signal, uint64_t value, int operation, cudaStream_t stream) {
  moveOnStream(wanted, stream);
  signalOnStream(wanted.function, signal, value, operation, wanted.pe, stream, false);
}

}  // namespace

uint64_t nvshmem_signal_fetch(uint64_t* signal) {
  constexpr char function[] = "nvshmem_signal_fetch";
  const auto session = require(function);
  return __atomic_load_n(
      reinterpret_cast<uint64_t*>(elementAddress(*session, function, signal, sizeof *signal, session->job->pe)),
      __ATOMIC_SEQ_CST);
}

void nvshmemx_signal_op_on_stream(uint64_t* address, uint64_t signal, int operation, int pe, cudaStream_t stream) {
  signalOnStream("nvshmemx_signal_op_on_stream", address, signal, operation, pe, stream);
}

#define SHOAL_SIGNALLED(suffix, Type, bytes)                                                                         \
  void nvshmemx_##suffix##_signal_on_stream(Type* dest, const Type* source, size_t count, uint64_t* address,         \
                                            uint64_t signal, int operation, int pe, cudaStream_t stream) {           \
    putAndSignal({"nvshmemx_" #suffix "_signal_on_stream", Direction::put, dest, source, count, bytes, pe}, address, \
                 signal, operation, stream);                                                                         \
  }                                                                                                                  \
  void nvshmemx_##suffix##_signal_nbi_on_stream(Type* dest, const Type* source, size_t count, uint64_t* address,     \
                                                uint64_t signal, int operation, int pe, cudaStream_t stream) {       \
    putAndSignal({"nvshmemx_" #suffix "_signal_nbi_on_stream", Direction::put, dest, source, count, bytes, pe},      \
                 address, signal, operation, stream);                                                                \
  }
#define SHOAL_SIGNALLED_TYPE(name, Type) SHOAL_SIGNALLED(name##_put, Type, sizeof(Type))
#define SHOAL_SIGNALLED_SIZE(bits) SHOAL_SIGNALLED(put##bits, void, bits / 8)
SHOAL_NVSHMEM_RMA_TYPES(SHOAL_SIGNALLED_TYPE)
SHOAL_NVSHMEM_SIZES(SHOAL_SIGNALLED_SIZE)
SHOAL_SIGNALLED(putmem, void, 1)

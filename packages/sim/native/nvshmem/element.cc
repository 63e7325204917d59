// Single elements: p and g.
#include <cstring>

#include "transfer.h"

using namespace shoal::nvshmem;

namespace {

// An integer of the size of Type, so that an element is written at once.
template <size_t bytes>
struct Word;
template <>
struct Word<1> {
  using Type = uint8_t;
};
template <>
struct Word<2> {
  using Type = uint16_t;
};
template <>
struct Word<4> {
  using Type = uint32_t;
};
template <>
struct Word<8> {
  using Type = uint64_t;
};

template <class Type>
void write(char* address, Type value) {
  typename Word<sizeof(Type)>::Type bits;
  memcpy(&bits, &value, sizeof bits);
  __atomic_store_n(reinterpret_cast<decltype(bits)*>(address), bits, __ATOMIC_SEQ_CST);
}

template <class Type>
Type read(const char* address) {
  const auto bits =
      __atomic_load_n(reinterpret_cast<const typename Word<sizeof(Type)>::Type*>(address), __ATOMIC_SEQ_CST);
  Type value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

ShoalSimRange rangeOf(const char* address, size_t bytes, bool isWritten) {
  return {reinterpret_cast<CUdeviceptr>(address), bytes, isWritten};
}

template <class Type>
void put(const char* function, Type* destination, Type value, int pe) {
  const auto session = require(function);
  write(elementAddress(*session, function, destination, sizeof(Type), pe), value);
  session->job->ring(pe);
}

template <class Type>
void putOnStream(const char* function, Type* destination, Type value, int pe, cudaStream_t stream) {
  const auto session = require(function);
  char* address = elementAddress(*session, function, destination, sizeof(Type), pe);
  auto body = [job = session->job, address, value, pe] {
    write(address, value);
    job->ring(pe);
    return CUDA_SUCCESS;
  };
  mustSucceed(*session, enqueue(session, function, stream, std::move(body), {rangeOf(address, sizeof(Type), true)}),
              function);
}

template <class Type>
Type get(const char* function, const Type* source, int pe) {
  const auto session = require(function);
  return read<Type>(elementAddress(*session, function, source, sizeof(Type), pe));
}

// The function returns the value, so it must wait for the stream.
template <class Type>
Type getOnStream(const char* function, const Type* source, int pe, cudaStream_t stream) {
  const auto session = require(function);
  const char* address = elementAddress(*session, function, source, sizeof(Type), pe);
  auto value = std::make_shared<Type>();
  auto body = [address, value] {
    *value = read<Type>(address);
    return CUDA_SUCCESS;
  };
  mustSucceed(*session, enqueue(session, function, stream, std::move(body), {rangeOf(address, sizeof(Type), false)}),
              function);
  InContext scope(*session);
  mustSucceed(*session, cuStreamSynchronize(stream), function);
  return *value;
}

}  // namespace

#define SHOAL_ELEMENTS(name, Type)                                                                               \
  void nvshmem_##name##_p(Type* dest, const Type value, int pe) { put("nvshmem_" #name "_p", dest, value, pe); } \
  void nvshmemx_##name##_p_on_stream(Type* dest, const Type value, int pe, cudaStream_t stream) {                \
    putOnStream("nvshmemx_" #name "_p_on_stream", dest, value, pe, stream);                                      \
  }                                                                                                              \
  Type nvshmem_##name##_g(const Type* source, int pe) { return get("nvshmem_" #name "_g", source, pe); }         \
  Type nvshmemx_##name##_g_on_stream(const Type* source, int pe, cudaStream_t stream) {                          \
    return getOnStream("nvshmemx_" #name "_g_on_stream", source, pe, stream);                                    \
  }
SHOAL_NVSHMEM_RMA_TYPES(SHOAL_ELEMENTS)

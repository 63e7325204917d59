// Put and get, for all types and sizes.
#include "transfer.h"

using namespace shoal::nvshmem;

// The four functions of one name: blocking and non-blocking, with and without a stream. On a stream, both behave alike,
// because the stream runs operations in order.
#define SHOAL_MOVES(suffix, Type, direction, bytes)                                                                   \
  void nvshmem_##suffix(Type* dest, const Type* source, size_t count, int pe) {                                       \
    move({"nvshmem_" #suffix, Direction::direction, dest, source, count, bytes, pe}, true);                           \
  }                                                                                                                   \
  void nvshmem_##suffix##_nbi(Type* dest, const Type* source, size_t count, int pe) {                                 \
    move({"nvshmem_" #suffix "_nbi", Direction::direction, dest, source, count, bytes, pe}, false);                   \
  }                                                                                                                   \
  void nvshmemx_##suffix##_on_stream(Type* dest, const Type* source, size_t count, int pe, cudaStream_t stream) {     \
    moveOnStream({"nvshmemx_" #suffix "_on_stream", Direction::direction, dest, source, count, bytes, pe}, stream);   \
  }                                                                                                                   \
  void nvshmemx_##suffix##_nbi_on_stream(Type* dest, const Type* source, size_t count, int pe, cudaStream_t stream) { \
    moveOnStream({"nvshmemx_" #suffix "_nbi_on_stream", Direction::direction, dest, source, count, bytes, pe},        \
                 stream);                                                                                             \
  }
#define SHOAL_STRIDED(suffix, Type, direction, bytes)                                                                 \
  void nvshmem_##suffix(Type* dest, const Type* source, ptrdiff_t destStride, ptrdiff_t sourceStride, size_t count,   \
                        int pe) {                                                                                     \
    move({"nvshmem_" #suffix, Direction::direction, dest, source, count, bytes, pe, destStride, sourceStride}, true); \
  }                                                                                                                   \
  void nvshmemx_##suffix##_on_stream(Type* dest, const Type* source, ptrdiff_t destStride, ptrdiff_t sourceStride,    \
                                     size_t count, int pe, cudaStream_t stream) {                                     \
    moveOnStream({"nvshmemx_" #suffix "_on_stream", Direction::direction, dest, source, count, bytes, pe, destStride, \
                  sourceStride},                                                                                      \
                 stream);                                                                                             \
  }
#define SHOAL_TYPED(name, Type)                       \
  SHOAL_MOVES(name##_put, Type, put, sizeof(Type))    \
  SHOAL_MOVES(name##_get, Type, get, sizeof(Type))    \
  SHOAL_STRIDED(name##_iput, Type, put, sizeof(Type)) \
  SHOAL_STRIDED(name##_iget, Type, get, sizeof(Type))
#define SHOAL_SIZED(bits)                        \
  SHOAL_MOVES(put##bits, void, put, bits / 8)    \
  SHOAL_MOVES(get##bits, void, get, bits / 8)    \
  SHOAL_STRIDED(iput##bits, void, put, bits / 8) \
  SHOAL_STRIDED(iget##bits, void, get, bits / 8)

SHOAL_NVSHMEM_RMA_TYPES(SHOAL_TYPED)
SHOAL_NVSHMEM_SIZES(SHOAL_SIZED)
SHOAL_MOVES(putmem, void, put, 1)
SHOAL_MOVES(getmem, void, get, 1)

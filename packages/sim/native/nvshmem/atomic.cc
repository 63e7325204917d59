// Atomic operations on a peer's memory. All PEs map the same pages, so the CPU's atomics are sufficient.
#include <cstring>

#include "transfer.h"

using namespace shoal::nvshmem;

namespace {

template <class Type, class Change>
auto change(const char* function, const Type* destination, int pe, Change&& operation) {
  const auto session = require(function);
  auto* address = reinterpret_cast<Type*>(elementAddress(*session, function, destination, sizeof(Type), pe));
  const Type before = operation(address);
  session->job->ring(pe);
  return before;
}

template <class Type>
Type load(Type* address) {
  Type value;
  __atomic_load(address, &value, __ATOMIC_SEQ_CST);
  return value;
}

template <class Type>
Type exchange(Type* address, Type value) {
  Type before;
  __atomic_exchange(address, &value, &before, __ATOMIC_SEQ_CST);
  return before;
}

template <class Type>
Type compareExchange(Type* address, Type condition, Type value) {
  __atomic_compare_exchange_n(address, &condition, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return condition;
}

}  // namespace

#define SHOAL_FETCHING(name, Type, operation, builtin)                                 \
  Type nvshmem_##name##_atomic_fetch_##operation(Type* dest, Type value, int pe) {     \
    return change("nvshmem_" #name "_atomic_fetch_" #operation, dest, pe,              \
                  [value](Type* at) { return builtin(at, value, __ATOMIC_SEQ_CST); }); \
  }                                                                                    \
  void nvshmem_##name##_atomic_##operation(Type* dest, Type value, int pe) {           \
    change("nvshmem_" #name "_atomic_" #operation, dest, pe,                           \
           [value](Type* at) { return builtin(at, value, __ATOMIC_SEQ_CST); });        \
  }
#define SHOAL_BITWISE(name, Type)                     \
  SHOAL_FETCHING(name, Type, and, __atomic_fetch_and) \
  SHOAL_FETCHING(name, Type, or, __atomic_fetch_or)   \
  SHOAL_FETCHING(name, Type, xor, __atomic_fetch_xor)
#define SHOAL_STANDARD(name, Type)                                                            \
  SHOAL_FETCHING(name, Type, add, __atomic_fetch_add)                                         \
  Type nvshmem_##name##_atomic_fetch_inc(Type* dest, int pe) {                                \
    return change("nvshmem_" #name "_atomic_fetch_inc", dest, pe,                             \
                  [](Type* at) { return __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST); });      \
  }                                                                                           \
  void nvshmem_##name##_atomic_inc(Type* dest, int pe) {                                      \
    change("nvshmem_" #name "_atomic_inc", dest, pe,                                          \
           [](Type* at) { return __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST); });             \
  }                                                                                           \
  Type nvshmem_##name##_atomic_compare_swap(Type* dest, Type condition, Type value, int pe) { \
    return change("nvshmem_" #name "_atomic_compare_swap", dest, pe,                          \
                  [=](Type* at) { return compareExchange(at, condition, value); });           \
  }
#define SHOAL_EXTENDED(name, Type)                                                                               \
  Type nvshmem_##name##_atomic_fetch(const Type* dest, int pe) {                                                 \
    return change("nvshmem_" #name "_atomic_fetch", dest, pe, [](Type* at) { return load(at); });                \
  }                                                                                                              \
  void nvshmem_##name##_atomic_set(Type* dest, Type value, int pe) {                                             \
    change("nvshmem_" #name "_atomic_set", dest, pe, [value](Type* at) { return exchange(at, value); });         \
  }                                                                                                              \
  Type nvshmem_##name##_atomic_swap(Type* dest, Type value, int pe) {                                            \
    return change("nvshmem_" #name "_atomic_swap", dest, pe, [value](Type* at) { return exchange(at, value); }); \
  }
SHOAL_NVSHMEM_BITWISE_AMO_TYPES(SHOAL_BITWISE)
SHOAL_NVSHMEM_STANDARD_AMO_TYPES(SHOAL_STANDARD)
SHOAL_NVSHMEM_EXTENDED_AMO_TYPES(SHOAL_EXTENDED)

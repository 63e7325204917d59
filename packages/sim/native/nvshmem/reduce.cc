// The reductions, for all types.
#include "reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "collective.h"

using namespace shoal::nvshmem;

namespace {

float widen(ShoalBfloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

ShoalBfloat16 roundToBfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value != value) return {static_cast<uint16_t>(0x7fff)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

float widen(ShoalHalf value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16, exponent = value.bits >> 10 & 0x1f,
                 fraction = value.bits & 0x3ff;
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }
  const uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

ShoalHalf roundToHalf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(0x7fff)};
  // rounds to more than the largest finite value
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude >= 0x38800000) {
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return {static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13)};
  }
  // A subnormal result: adding 0.5 leaves the value in multiples of 2^-24, rounded to even, in the low bits.
  float absolute;
  memcpy(&absolute, &magnitude, sizeof absolute);
  absolute += 0.5f;
  uint32_t shifted;
  memcpy(&shifted, &absolute, sizeof shifted);
  return {static_cast<uint16_t>(sign | (shifted - 0x3f000000))};
}

template <class Type>
struct Number {
  // Unsigned, so that overflow wraps around. At least 32 bits, so that products of short values do not overflow an int.
  using Wide =
      std::conditional_t<std::is_integral_v<Type>, std::conditional_t<sizeof(Type) == 8, uint64_t, uint32_t>, Type>;
  static Type load(Type value) { return value; }
  static Type store(Type value) { return value; }
  using Value = Type;
};
template <>
struct Number<ShoalHalf> {
  using Value = float;
  using Wide = float;
  static float load(ShoalHalf value) { return widen(value); }
  static ShoalHalf store(float value) { return roundToHalf(value); }
};
template <>
struct Number<ShoalBfloat16> {
  using Value = float;
  using Wide = float;
  static float load(ShoalBfloat16 value) { return widen(value); }
  static ShoalBfloat16 store(float value) { return roundToBfloat16(value); }
};

// The operations by number, to check that all PEs agree.
enum Operation : uint32_t { op_and, op_or, op_xor, op_min, op_max, op_sum, op_prod };

template <Operation operation, class Type>
typename Number<Type>::Value combineTwo(typename Number<Type>::Value left, typename Number<Type>::Value right) {
  using Value = typename Number<Type>::Value;
  using Wide = typename Number<Type>::Wide;
  if constexpr (operation == op_and) return static_cast<Value>(left & right);
  else if constexpr (operation == op_or) return static_cast<Value>(left | right);
  else if constexpr (operation == op_xor) return static_cast<Value>(left ^ right);
  else if constexpr (operation == op_min) return right < left ? right : left;
  else if constexpr (operation == op_max) return left < right ? right : left;
  else if constexpr (operation == op_sum) return static_cast<Value>(static_cast<Wide>(left) + static_cast<Wide>(right));
  else return static_cast<Value>(static_cast<Wide>(left) * static_cast<Wide>(right));
}

template <Operation operation, class Type>
void combineAll(void* out, const void* const* sources, size_t sourceCount, size_t count) {
  using Value = typename Number<Type>::Value;
  constexpr size_t block = 1024;
  Value sums[block];
  for (size_t start = 0; start < count; start += block) {
    const size_t length = std::min(block, count - start);
    const Type* first = static_cast<const Type*>(sources[0]) + start;
    for (size_t index = 0; index < length; ++index) sums[index] = Number<Type>::load(first[index]);
    for (size_t source = 1; source < sourceCount; ++source) {
      const Type* next = static_cast<const Type*>(sources[source]) + start;
      for (size_t index = 0; index < length; ++index)
        sums[index] = combineTwo<operation, Type>(sums[index], Number<Type>::load(next[index]));
    }
    Type* to = static_cast<Type*>(out) + start;
    for (size_t index = 0; index < length; ++index) to[index] = Number<Type>::store(sums[index]);
  }
}

enum : uint32_t {
#define SHOAL_TYPE(name, Type) type_##name,
  SHOAL_NVSHMEM_REDUCE_TYPES(SHOAL_TYPE)
#undef SHOAL_TYPE
};

}  // namespace

#define SHOAL_REDUCTION_OF(suffix, Type, which, number, operation)                                                \
  int nvshmem_##suffix(nvshmem_team_t team, Type* dest, const Type* source, size_t count) {                       \
    return run({"nvshmem_" #suffix, CollectiveKind::which, number, sizeof(Type), operation,                       \
                combineAll<operation, Type>, team, dest, source, count});                                         \
  }                                                                                                               \
  int nvshmemx_##suffix##_on_stream(nvshmem_team_t team, Type* dest, const Type* source, size_t count,            \
                                    cudaStream_t stream) {                                                        \
    return runOnStream({"nvshmemx_" #suffix "_on_stream", CollectiveKind::which, number, sizeof(Type), operation, \
                        combineAll<operation, Type>, team, dest, source, count},                                  \
                       stream);                                                                                   \
  }
#define SHOAL_REDUCTION(name, Type, operation)                                               \
  SHOAL_REDUCTION_OF(name##_##operation##_reduce, Type, reduce, type_##name, op_##operation) \
  SHOAL_REDUCTION_OF(name##_##operation##_reducescatter, Type, reduceScatter, type_##name, op_##operation)
#define SHOAL_BITWISE_REDUCTIONS(name, Type) \
  SHOAL_REDUCTION(name, Type, and)           \
  SHOAL_REDUCTION(name, Type, or)            \
  SHOAL_REDUCTION(name, Type, xor)
#define SHOAL_REDUCTIONS(name, Type) \
  SHOAL_REDUCTION(name, Type, max)   \
  SHOAL_REDUCTION(name, Type, min)   \
  SHOAL_REDUCTION(name, Type, sum)   \
  SHOAL_REDUCTION(name, Type, prod)
SHOAL_NVSHMEM_BITWISE_REDUCE_TYPES(SHOAL_BITWISE_REDUCTIONS)
SHOAL_NVSHMEM_REDUCE_TYPES(SHOAL_REDUCTIONS)

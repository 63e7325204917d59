#include "reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "numeric.h"

namespace shoal::nccl {

namespace {

constexpr size_t kBlock = 1024;

// The type in which values are combined. Signed integers use their unsigned type if overflow must wrap around.
template <class Stored>
struct Wide {
  using Type = Stored;
  static Type load(Stored value) { return value; }
  static Stored store(Type value) { return value; }
};
template <class Narrow>
struct WideFloat {
  using Type = float;
  static Type load(Narrow value) { return Narrow::decode(value); }
  static Narrow store(Type value) { return Narrow::encode(value); }
};
template <> struct Wide<Half> : WideFloat<Half> {};
template <> struct Wide<Bfloat16> : WideFloat<Bfloat16> {};
template <> struct Wide<Float8E4M3> : WideFloat<Float8E4M3> {};
template <> struct Wide<Float8E5M2> : WideFloat<Float8E5M2> {};

template <class Value>
Value add(Value a, Value b) {
  if constexpr (std::is_integral_v<Value>) {
    using Unsigned = std::make_unsigned_t<Value>;
    return static_cast<Value>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

template <class Value>
Value multiply(Value a, Value b) {
  if constexpr (std::is_integral_v<Value>) {
    // Multiply in 64 bits: narrow unsigned values would be promoted to int, and could overflow it.
    return static_cast<Value>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// As in fmax and fmin, a number wins over a NaN.
template <class Value>
Value larger(Value a, Value b) {
  return b > a || a != a ? b : a;
}
template <class Value>
Value smaller(Value a, Value b) {
  return b < a || a != a ? b : a;
}

template <Reducer reducer, class Value>
Value combine(Value a, Value b) {
  if constexpr (reducer == Reducer::prod) return multiply(a, b);
  else if constexpr (reducer == Reducer::max) return larger(a, b);
  else if constexpr (reducer == Reducer::min) return smaller(a, b);
  else return add(a, b);
}

template <Reducer reducer, class Stored>
void reduceTyped(const Reduction& reduction) {
  using Value = typename Wide<Stored>::Type;
  constexpr bool scales = reducer == Reducer::preMulSum;
  Value factors[64];
  if constexpr (scales) {
    for (int rank = 0; rank < reduction.ranks; ++rank) {
      Stored factor;
      memcpy(&factor, &reduction.scalars[rank], sizeof factor);
      factors[rank] = Wide<Stored>::load(factor);
    }
  }
  Value sum[kBlock];
  Stored result[kBlock];
  for (size_t start = 0; start < reduction.count; start += kBlock) {
    const size_t length = std::min(kBlock, reduction.count - start);
    for (int rank = 0; rank < reduction.ranks; ++rank) {
      const Stored* input = static_cast<const Stored*>(reduction.inputs[rank]) + start;
      if (rank == 0) {
        for (size_t i = 0; i < length; ++i) {
          Value value = Wide<Stored>::load(input[i]);
          if constexpr (scales) value = multiply(value, factors[0]);
          sum[i] = value;
        }
      } else {
        for (size_t i = 0; i < length; ++i) {
          Value value = Wide<Stored>::load(input[i]);
          if constexpr (scales) value = multiply(value, factors[rank]);
          sum[i] = combine<reducer>(sum[i], value);
        }
      }
    }
    if constexpr (reducer == Reducer::avg) {
      const Value ranks = static_cast<Value>(reduction.ranks);
      for (size_t i = 0; i < length; ++i) sum[i] = static_cast<Value>(sum[i] / ranks);
    }
    for (size_t i = 0; i < length; ++i) result[i] = Wide<Stored>::store(sum[i]);
    for (int output = 0; output < reduction.outputCount; ++output) {
      memcpy(static_cast<Stored*>(reduction.outputs[output]) + start, result, length * sizeof(Stored));
    }
  }
}

template <class Stored>
void dispatch(const Reduction& reduction) {
  switch (reduction.reducer) {
    case Reducer::sum: return reduceTyped<Reducer::sum, Stored>(reduction);
    case Reducer::prod: return reduceTyped<Reducer::prod, Stored>(reduction);
    case Reducer::max: return reduceTyped<Reducer::max, Stored>(reduction);
    case Reducer::min: return reduceTyped<Reducer::min, Stored>(reduction);
    case Reducer::avg: return reduceTyped<Reducer::avg, Stored>(reduction);
    case Reducer::preMulSum: return reduceTyped<Reducer::preMulSum, Stored>(reduction);
  }
}

}  // namespace

size_t bytesOf(ncclDataType_t type) {
  constexpr size_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return bytes[type];
}

void reduce(const Reduction& reduction) {
  switch (reduction.type) {
    case ncclInt8: return dispatch<int8_t>(reduction);
    case ncclUint8: return dispatch<uint8_t>(reduction);
    case ncclInt32: return dispatch<int32_t>(reduction);
    case ncclUint32: return dispatch<uint32_t>(reduction);
    case ncclInt64: return dispatch<int64_t>(reduction);
    case ncclUint64: return dispatch<uint64_t>(reduction);
    case ncclFloat16: return dispatch<Half>(reduction);
    case ncclFloat32: return dispatch<float>(reduction);
    case ncclFloat64: return dispatch<double>(reduction);
    case ncclBfloat16: return dispatch<Bfloat16>(reduction);
    case ncclFloat8e4m3: return dispatch<Float8E4M3>(reduction);
    case ncclFloat8e5m2: return dispatch<Float8E5M2>(reduction);
    case ncclNumTypes: return;
  }
}

}  // namespace shoal::nccl

// atom and red.
#include "address.h"
#include "real.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

template <AtomicOp op, class T>
SHOAL_INLINE T combined(T old, T value, T other) {
  switch (op) {
    case AtomicOp::add: return static_cast<T>(old + value);
    case AtomicOp::inc: return old >= value ? T{0} : static_cast<T>(old + 1);
    case AtomicOp::dec: return old == 0 || old > value ? value : static_cast<T>(old - 1);
    case AtomicOp::minimum: return value < old ? value : old;
    case AtomicOp::maximum: return value > old ? value : old;
    case AtomicOp::conjunction: return static_cast<T>(static_cast<uint64_t>(old) & static_cast<uint64_t>(value));
    case AtomicOp::disjunction: return static_cast<T>(static_cast<uint64_t>(old) | static_cast<uint64_t>(value));
    case AtomicOp::exclusive: return static_cast<T>(static_cast<uint64_t>(old) ^ static_cast<uint64_t>(value));
    case AtomicOp::exchange: return value;
    case AtomicOp::compareAndSwap: return old == value ? other : old;
  }
  return old;
}

template <AtomicOp op, class T>
struct Integer {
  using Bits = T;
  SHOAL_INLINE static T of(T old, T value, T other) { return combined<op, T>(old, value, other); }
};
struct AddFloat {  // global atomics flush subnormals
  using Bits = uint32_t;
  SHOAL_INLINE static uint32_t of(uint32_t old, uint32_t value, uint32_t) {
    return bitsOf(oneNan(flushed(flushed(asFloat(old)) + flushed(asFloat(value)))));
  }
};
struct AddFloatShared {
  using Bits = uint32_t;
  SHOAL_INLINE static uint32_t of(uint32_t old, uint32_t value, uint32_t) {
    return bitsOf(oneNan(asFloat(old) + asFloat(value)));
  }
};
struct AddDouble {
  using Bits = uint64_t;
  SHOAL_INLINE static uint64_t of(uint64_t old, uint64_t value, uint64_t) {
    return bitsOf(asDouble(old) + asDouble(value));
  }
};
SHOAL_INLINE uint16_t addHalf(uint16_t a, uint16_t b) {
  return toHalf(static_cast<double>(fromHalf(a)) + static_cast<double>(fromHalf(b)));
}
// The exact sum of two bf16 needs more bits than a double only if one operand is far smaller. Rounding to odd keeps its
// effect on the final rounding.
SHOAL_INLINE uint16_t addBf16(uint16_t a, uint16_t b) {
  const auto x = static_cast<double>(fromBf16(a)), y = static_cast<double>(fromBf16(b));
  const double sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);
  if (error == 0 || !__builtin_isfinite(sum) || (bitsOf(sum) & 1) != 0) return toBf16(sum);
  return toBf16(asDouble(bitsOf(sum) + ((error > 0) == (sum > 0) ? 1 : -1)));
}
template <bool isBf16>
struct AddSmall {
  using Bits = uint16_t;
  SHOAL_INLINE static uint16_t of(uint16_t old, uint16_t value, uint16_t) {
    return isBf16 ? addBf16(old, value) : addHalf(old, value);
  }
};
// A number wins over a NaN.
template <bool isBf16, bool isMaximum>
struct ExtremeSmall {
  using Bits = uint16_t;
  SHOAL_INLINE static uint16_t of(uint16_t old, uint16_t value, uint16_t) {
    const float x = isBf16 ? fromBf16(old) : fromHalf(old), y = isBf16 ? fromBf16(value) : fromHalf(value);
    if (x != x) return y != y ? 0x7fff : value;
    if (y != y) return old;
    const bool isLess = x < y || (x == y && (old & 0x8000) != 0);
    return isLess != isMaximum ? old : value;
  }
};
template <class F>
struct BothOf {
  using Bits = uint32_t;
  SHOAL_INLINE static uint32_t of(uint32_t old, uint32_t value, uint32_t) {
    const auto low = F::of(static_cast<uint16_t>(old), static_cast<uint16_t>(value), 0);
    const auto high = F::of(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(value >> 16), 0);
    return low | static_cast<uint32_t>(high) << 16;
  }
};

// Other threads, devices and processes access the memory at the same time. A compare-and-swap loop works for every
// operation.
template <class F>
SHOAL_INLINE typename F::Bits atomically(uint8_t* at, typename F::Bits value, typename F::Bits other) {
  using T = typename F::Bits;
  T* cell = reinterpret_cast<T*>(at);
  T old = __atomic_load_n(cell, __ATOMIC_RELAXED);
  while (
      !__atomic_compare_exchange_n(cell, &old, F::of(old, value, other), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return old;
}

// to = the old value, a = the address, b = the value, c = the other value.
template <class F, Space space>
void atomic(Warp& warp, const Instr& instr, uint32_t mask) {
  using T = typename F::Bits;
  const T *value = input<T>(warp, instr.b), *other = instr.count == 2 ? input<T>(warp, instr.c) : value;
  T old[kLanes];
  eachAddress<space>(warp, instr, mask, instr.a, sizeof(T), true, [&](int lane, uint8_t* at) {
    if (space == Space::shared) {
      memcpy(&old[lane], at, sizeof(T));
      const T next = F::of(old[lane], value[lane], other[lane]);
      memcpy(at, &next, sizeof(T));
    } else {
      old[lane] = atomically<F>(at, value[lane], other[lane]);
    }
  });
  if (!instr.keepsOld) return;
  T* to = output<T>(warp, instr.to);
  eachSet(mask, [&](int lane) { to[lane] = old[lane]; });
}

template <class F>
Handler bySpace(const Key& key) {
  return key.space == Space::shared ? atomic<F, Space::shared> : atomic<F, Space::generic>;
}
// Only in global memory, by vector instructions.
template <bool isMaximum>
Handler extremeOfSmall(const Key& key) {
  if (key.space == Space::shared) return nullptr;
  switch (key.type) {
    case Type::f16: return atomic<ExtremeSmall<false, isMaximum>, Space::generic>;
    case Type::bf16: return atomic<ExtremeSmall<true, isMaximum>, Space::generic>;
    case Type::f16x2: return atomic<BothOf<ExtremeSmall<false, isMaximum>>, Space::generic>;
    case Type::bf16x2: return atomic<BothOf<ExtremeSmall<true, isMaximum>>, Space::generic>;
    default: return nullptr;
  }
}
template <AtomicOp op, class T>
Handler integer(const Key& key) {
  return bySpace<Integer<op, T>>(key);
}

}  // namespace

Handler findAtomic(const Key& key) {
  if (key.op != Op::atomic || key.space == Space::local) return nullptr;
  const Type type = key.type;
  const unsigned bytes = bytesOf(type);
  switch (static_cast<AtomicOp>(key.extra)) {
    case AtomicOp::add:
      if (type == Type::u32 || type == Type::s32) return integer<AtomicOp::add, uint32_t>(key);
      if (type == Type::u64 || type == Type::s64) return integer<AtomicOp::add, uint64_t>(key);
      if (type == Type::f32) return key.space == Space::shared ? bySpace<AddFloatShared>(key) : bySpace<AddFloat>(key);
      if (type == Type::f64) return bySpace<AddDouble>(key);
      if (type == Type::f16) return bySpace<AddSmall<false>>(key);
      if (type == Type::bf16) return bySpace<AddSmall<true>>(key);
      if (type == Type::f16x2) return bySpace<BothOf<AddSmall<false>>>(key);
      return type == Type::bf16x2 ? bySpace<BothOf<AddSmall<true>>>(key) : nullptr;
    case AtomicOp::inc: return type == Type::u32 ? integer<AtomicOp::inc, uint32_t>(key) : nullptr;
    case AtomicOp::dec: return type == Type::u32 ? integer<AtomicOp::dec, uint32_t>(key) : nullptr;
    case AtomicOp::minimum:
      if (Handler found = extremeOfSmall<false>(key)) return found;
      if (type == Type::u32) return integer<AtomicOp::minimum, uint32_t>(key);
      if (type == Type::s32) return integer<AtomicOp::minimum, int32_t>(key);
      if (type == Type::u64) return integer<AtomicOp::minimum, uint64_t>(key);
      return type == Type::s64 ? integer<AtomicOp::minimum, int64_t>(key) : nullptr;
    case AtomicOp::maximum:
      if (Handler found = extremeOfSmall<true>(key)) return found;
      if (type == Type::u32) return integer<AtomicOp::maximum, uint32_t>(key);
      if (type == Type::s32) return integer<AtomicOp::maximum, int32_t>(key);
      if (type == Type::u64) return integer<AtomicOp::maximum, uint64_t>(key);
      return type == Type::s64 ? integer<AtomicOp::maximum, int64_t>(key) : nullptr;
    case AtomicOp::conjunction:
      return bytes == 4   ? integer<AtomicOp::conjunction, uint32_t>(key)
             : bytes == 8 ? integer<AtomicOp::conjunction, uint64_t>(key)
                          : nullptr;
    case AtomicOp::disjunction:
      return bytes == 4   ? integer<AtomicOp::disjunction, uint32_t>(key)
             : bytes == 8 ? integer<AtomicOp::disjunction, uint64_t>(key)
                          : nullptr;
    case AtomicOp::exclusive:
      return bytes == 4   ? integer<AtomicOp::exclusive, uint32_t>(key)
             : bytes == 8 ? integer<AtomicOp::exclusive, uint64_t>(key)
                          : nullptr;
    case AtomicOp::exchange:
      return bytes == 4   ? integer<AtomicOp::exchange, uint32_t>(key)
             : bytes == 8 ? integer<AtomicOp::exchange, uint64_t>(key)
                          : nullptr;
    case AtomicOp::compareAndSwap:
      if (bytes == 2) return integer<AtomicOp::compareAndSwap, uint16_t>(key);
      return bytes == 4   ? integer<AtomicOp::compareAndSwap, uint32_t>(key)
             : bytes == 8 ? integer<AtomicOp::compareAndSwap, uint64_t>(key)
                          : nullptr;
  }
  return nullptr;
}

}  // namespace shoal::ptx::SHOAL_LANES

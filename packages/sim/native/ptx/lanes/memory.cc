// ld and st, for single values and vectors.
#include "address.h"

namespace shoal::ptx::SHOAL_LANES {

namespace {

struct Wide {
  uint64_t low, high;
};

template <class M> constexpr bool isSignedValue = static_cast<M>(-1) < static_cast<M>(0);
template <> constexpr bool isSignedValue<Wide> = false;

template <class R, class M>
SHOAL_INLINE R extended(M value) {
  if constexpr (sizeof(M) == 16) return value;
  else return static_cast<R>(value);
}

// Loads a vector for each lane; the lanes are `stride` bytes apart.
template <Space space>
__attribute__((noinline)) void fetch(Warp& warp, const Instr& instr, uint32_t mask, unsigned size, uint8_t* values,
                                     unsigned stride) {
  if (const uint8_t* from = contiguous<space>(warp, instr, mask, instr.a, size, false)) {
    for (int lane = 0; lane < kLanes; ++lane)
      memcpy(values + lane * stride, from + static_cast<size_t>(lane) * size, size);
  } else {
    eachAddress<space>(warp, instr, mask, instr.a, size, false,
                       [&](int lane, const uint8_t* at) { memcpy(values + lane * stride, at, size); });
  }
}
template <Space space>
__attribute__((noinline)) void deliver(Warp& warp, const Instr& instr, uint32_t mask, unsigned size,
                                       const uint8_t* values, unsigned stride) {
  eachAddress<space>(warp, instr, mask, instr.a, size, true,
                     [&](int lane, uint8_t* to) { memcpy(to, values + lane * stride, size); });
}

template <class R, class M>
__attribute__((noinline)) void loadVector(Warp& warp, const Instr& instr, uint32_t mask,
                                          decltype(fetch<Space::generic>)* fetchFrom) {
  const uint32_t* registers = warp.operands + instr.target;
  // Store after all loads, because an output register may also be the address.
  M values[kLanes][8];
  fetchFrom(warp, instr, mask, sizeof(M) * instr.count, reinterpret_cast<uint8_t*>(values), sizeof values[0]);
  for (unsigned index = 0; index < instr.count; ++index) {
    if (registers[index] == ~0u) continue;
    R* to = output<R>(warp, registers[index]);
    if (mask == ~0u) {
      for (int lane = 0; lane < kLanes; ++lane) to[lane] = extended<R>(values[lane][index]);
    } else {
      eachSet(mask, [&](int lane) { to[lane] = extended<R>(values[lane][index]); });
    }
  }
}
template <class R, class M>
__attribute__((noinline)) void storeVector(Warp& warp, const Instr& instr, uint32_t mask,
                                           decltype(deliver<Space::generic>)* deliverTo) {
  const uint32_t* registers = warp.operands + instr.target;
  M values[kLanes][8];
  for (unsigned index = 0; index < instr.count; ++index) {
    const R* from = input<R>(warp, registers[index]);
    for (int lane = 0; lane < kLanes; ++lane) values[lane][index] = extended<M>(from[lane]);
  }
  deliverTo(warp, instr, mask, sizeof(M) * instr.count, reinterpret_cast<const uint8_t*>(values), sizeof values[0]);
}

// M is the type in memory, R the type of the register. a is the address; the registers are `to` or
// warp.operands[target...].
template <class R, class M, Space space>
void load(Warp& warp, const Instr& instr, uint32_t mask) {
  if (instr.count == 1) {
    R* to = output<R>(warp, instr.to);
    if (const uint8_t* from = contiguous<space>(warp, instr, mask, instr.a, sizeof(M), false)) {
      M values[kLanes];
      memcpy(values, from, sizeof values);
      for (int lane = 0; lane < kLanes; ++lane) to[lane] = extended<R>(values[lane]);
      return;
    }
    eachAddress<space>(warp, instr, mask, instr.a, sizeof(M), false, [&](int lane, const uint8_t* from) {
      M value;
      memcpy(&value, from, sizeof value);
      to[lane] = extended<R>(value);
    });
    return;
  }
  loadVector<R, M>(warp, instr, mask, fetch<space>);
}

template <class R, class M, Space space>
void store(Warp& warp, const Instr& instr, uint32_t mask) {
  if (instr.count == 1) {
    const R* from = input<R>(warp, instr.to);
    if (uint8_t* to = contiguous<space>(warp, instr, mask, instr.a, sizeof(M), true)) {
      M values[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) values[lane] = extended<M>(from[lane]);
      memcpy(to, values, sizeof values);
      return;
    }
    eachAddress<space>(warp, instr, mask, instr.a, sizeof(M), true, [&](int lane, uint8_t* to) {
      const M value = extended<M>(from[lane]);
      memcpy(to, &value, sizeof value);
    });
    return;
  }
  storeVector<R, M>(warp, instr, mask, deliver<space>);
}

// A kernel parameter at a fixed offset has the same value for all lanes.
template <class R, class M>
void loadParam(Warp& warp, const Instr& instr, uint32_t mask) {
  for (unsigned index = 0; index < instr.count; ++index) {
    const uint32_t at = instr.count == 1 ? instr.to : warp.operands[instr.target + index];
    if (at == ~0u) continue;
    M value;
    memcpy(&value, warp.parameters + instr.imm + index * sizeof(M), sizeof value);
    const R wide = extended<R>(value);
    each<R>(warp, at, mask, [=](int) SHOAL_LAMBDA { return wide; });
  }
}

template <class R, class M, Space space>
Handler byDirection(const Key& key) {
  if (key.op == Op::load) return load<R, M, space>;
  // Stores never extend, so signed types need no loop.
  if constexpr (isSignedValue<M>) return nullptr;
  else return store<R, M, space>;
}

template <class R, class M>
Handler bySpace(const Key& key) {
  if (key.op == Op::loadParam) return loadParam<R, M>;
  switch (key.space) {
    case Space::shared:
    case Space::cluster: return byDirection<R, M, Space::shared>(key);
    case Space::local: return byDirection<R, M, Space::local>(key);
    default: return byDirection<R, M, Space::generic>(key);
  }
}

// Selects by the register's size, for each type in memory.
template <class M>
Handler byRegister(const Key& key) {
  switch (key.extra) {
    case 2: return sizeof(M) <= 2 ? bySpace<uint16_t, M>(key) : nullptr;
    case 4: return sizeof(M) <= 4 ? bySpace<uint32_t, M>(key) : nullptr;
    case 8: return bySpace<uint64_t, M>(key);
    default: return nullptr;
  }
}

}  // namespace

Handler findMemory(const Key& key) {
  if (key.op != Op::load && key.op != Op::store && key.op != Op::loadParam) return nullptr;
  const bool isSignKept = key.op != Op::store && isSigned(key.type);
  switch (bytesOf(key.type)) {
    case 1: return isSignKept ? byRegister<int8_t>(key) : byRegister<uint8_t>(key);
    case 2: return isSignKept ? byRegister<int16_t>(key) : byRegister<uint16_t>(key);
    case 4: return isSignKept ? byRegister<int32_t>(key) : byRegister<uint32_t>(key);
    case 8: return key.extra == 8 ? bySpace<uint64_t, uint64_t>(key) : nullptr;
    case 16: return key.extra == 16 ? bySpace<Wide, Wide>(key) : nullptr;
    default: return nullptr;
  }
}

}  // namespace shoal::ptx::SHOAL_LANES

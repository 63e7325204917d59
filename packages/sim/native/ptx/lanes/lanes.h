// Loops over the lanes of a warp. These files are compiled several times, for different CPUs; SHOAL_LANES is the
// namespace of the build. They must not use templates of the standard library: the linker would keep one copy of a
// template, possibly one that this CPU cannot run.
#pragma once

#include <stdint.h>
#include <string.h>

#include "../machine.h"

#define SHOAL_INLINE inline __attribute__((always_inline))
#define SHOAL_LAMBDA __attribute__((always_inline))
#define SHOAL_IVDEP _Pragma("GCC ivdep")

namespace shoal::ptx::SHOAL_LANES {

namespace {

template <class T>
SHOAL_INLINE T* output(Warp& warp, uint32_t operand) {
  return reinterpret_cast<T*>(__builtin_assume_aligned(warp.registers + operand, 4));
}

template <class T>
SHOAL_INLINE const T* input(const Warp& warp, uint32_t operand) {
  const uint8_t* base = (operand & kConstant) != 0 ? warp.constants : warp.registers;
  return reinterpret_cast<const T*>(__builtin_assume_aligned(base + (operand & ~kConstant), 4));
}

SHOAL_INLINE uint32_t inputPredicate(const Warp& warp, uint32_t operand) { return *input<uint32_t>(warp, operand); }

SHOAL_INLINE void setPredicate(Warp& warp, uint32_t operand, uint32_t mask, uint32_t value) {
  uint32_t* to = output<uint32_t>(warp, operand);
  *to = (*to & ~mask) | (value & mask);
}

// Lanes that have exited may be overwritten. So a loop over all 32 lanes is correct if all live lanes take part.
// Registers of one size either are equal or do not overlap.
template <class D, class F>
SHOAL_INLINE void each(Warp& warp, uint32_t operand, uint32_t mask, F&& of) {
  D* to = output<D>(warp, operand);
  if (mask == warp.live) {
    SHOAL_IVDEP
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = of(lane);
  } else {
    SHOAL_IVDEP
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = (mask >> lane & 1) != 0 ? static_cast<D>(of(lane)) : to[lane];
  }
}

// For expensive work, or work that must not run for other lanes.
template <class F>
SHOAL_INLINE void eachSet(uint32_t mask, F&& of) {
  for (; mask != 0; mask &= mask - 1) of(__builtin_ctz(mask));
}

template <class D, class A, class F>
void unary(Warp& warp, const Instr& instr, uint32_t mask) {
  const A* a = input<A>(warp, instr.a);
  each<D>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return F::of(a[lane]); });
}

template <class D, class A, class F>
void binary(Warp& warp, const Instr& instr, uint32_t mask) {
  const A *a = input<A>(warp, instr.a), *b = input<A>(warp, instr.b);
  each<D>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return F::of(a[lane], b[lane]); });
}

template <class D, class A, class F>
void ternary(Warp& warp, const Instr& instr, uint32_t mask) {
  const A *a = input<A>(warp, instr.a), *b = input<A>(warp, instr.b);
  const D* c = input<D>(warp, instr.c);
  each<D>(warp, instr.to, mask, [=](int lane) SHOAL_LAMBDA { return F::of(a[lane], b[lane], c[lane]); });
}

}  // namespace

Handler findInteger(const Key& key);
Handler findBits(const Key& key);
Handler findFloat(const Key& key);
Handler findHalf(const Key& key);
Handler findCompare(const Key& key);
Handler findConvert(const Key& key);
Handler findMove(const Key& key);
Handler findMemory(const Key& key);
Handler findAtomic(const Key& key);
Handler findWarp(const Key& key);
Handler findMatrix(const Key& key);
Handler findFragment(const Key& key);

}  // namespace shoal::ptx::SHOAL_LANES

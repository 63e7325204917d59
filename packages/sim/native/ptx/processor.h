// What this processor can do, and the system saves for its threads. Asked of the processor itself: the table behind
// __builtin_cpu_supports is part of libgcc, and not of what Zig's compiler has for musl.
#pragma once
#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

namespace shoal::ptx {

/** Which of the builds of LANE_FLAGS in the Makefile runs here: 4, 3, or 0 for that without any. */
inline int processorLevel() {
  struct Leaf {
    unsigned a = 0, b = 0, c = 0, d = 0;
  } one, seven;
  __get_cpuid(1, &one.a, &one.b, &one.c, &one.d);
  __get_cpuid_count(7, 0, &seven.a, &seven.b, &seven.c, &seven.d);
  constexpr unsigned fma = 1u << 12, popcnt = 1u << 23, xgetbv = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
  constexpr unsigned bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
  constexpr unsigned avx512f = 1u << 16, avx512dq = 1u << 17, avx512cd = 1u << 28, avx512bw = 1u << 30, avx512vl = 1u << 31;
  const auto hasAll = [](unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; };
  if (!hasAll(one.c, fma | popcnt | xgetbv | avx | f16c) || !hasAll(seven.b, bmi1 | avx2 | bmi2)) return 0;
  // Which registers the system saves: those of SSE and AVX, and three more sets of AVX-512.
  uint32_t saved, upper;
  asm("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
  if (!hasAll(saved, 0x06)) return 0;
  return hasAll(seven.b, avx512f | avx512dq | avx512cd | avx512bw | avx512vl) && hasAll(saved, 0xe0) ? 4 : 3;
}

}  // namespace shoal::ptx
#endif

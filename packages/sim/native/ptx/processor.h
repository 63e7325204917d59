// The features of this CPU, and the registers that the system saves for threads. Read with CPUID itself:
// __builtin_cpu_supports needs a table in libgcc, which Zig's compiler for musl does not have.
#pragma once
#if defined(__x86_64__)
#include <cpuid.h>

namespace shoal::ptx {

/** The relevant words of CPUID, and the system's XCR0. */
struct Processor {
  /** ECX of leaf 1, EBX of leaf 7. */
  unsigned features, extended;
  /** The register sets that the system saves. */
  unsigned saved;
};

inline Processor thisProcessor() {
  Processor found{};
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d)) found.features = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) found.extended = b;
  constexpr unsigned hasXgetbv = 1u << 27;
  if (found.features & hasXgetbv) asm("xgetbv" : "=a"(found.saved), "=d"(d) : "c"(0));
  return found;
}

/** The build of LANE_FLAGS (in the Makefile) for this CPU: 4, 3, or 0 for the build without flags. */
inline int levelOf(const Processor& processor) {
  constexpr unsigned fma = 1u << 12, popcnt = 1u << 23, avx = 1u << 28, f16c = 1u << 29;
  constexpr unsigned bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
  constexpr unsigned avx512f = 1u << 16, avx512dq = 1u << 17, avx512cd = 1u << 28, avx512bw = 1u << 30,
                     avx512vl = 1u << 31;
  // SSE and AVX state. AVX-512 needs three more sets.
  constexpr unsigned registers = 0x06, more = 0xe0;
  const auto hasAll = [](unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; };
  if (!hasAll(processor.features, fma | popcnt | avx | f16c) || !hasAll(processor.extended, bmi1 | avx2 | bmi2) ||
      !hasAll(processor.saved, registers))
    return 0;
  return hasAll(processor.extended, avx512f | avx512dq | avx512cd | avx512bw | avx512vl) &&
                 hasAll(processor.saved, more)
             ? 4
             : 3;
}

}  // namespace shoal::ptx
#endif

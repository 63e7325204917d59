// Bits: counts, shifts, fields, permutations.
#include "common.cuh"

typedef unsigned u32;
typedef unsigned long long u64;

EACH1(counts, u32, int, 4, o[0] = __popc(a); o[1] = __clz(a); o[2] = __ffs(a); o[3] = int(__brev(a));)
EACH1(counts64, u64, int, 3, o[0] = __popcll(a); o[1] = __clzll(a); o[2] = __ffsll(a);)
EACH1(reverse64, u64, u64, 1, o[0] = __brevll(a);)
EACH2(shifts, u32, u32, u32, 4, const u32 s = b % 40; asm("shl.b32 %0, %1, %2;" : "=r"(o[0]) : "r"(a), "r"(s)); asm("shr.u32 %0, %1, %2;" : "=r"(o[1]) : "r"(a), "r"(s));
      asm("shr.s32 %0, %1, %2;" : "=r"(o[2]) : "r"(a), "r"(s)); o[3] = a << (s & 31) | a >> (-s & 31);)
EACH2(shifts64, u64, u32, u64, 3, const u32 s = b % 80; asm("shl.b64 %0, %1, %2;" : "=l"(o[0]) : "l"(a), "r"(s)); asm("shr.u64 %0, %1, %2;" : "=l"(o[1]) : "l"(a), "r"(s));
      asm("shr.s64 %0, %1, %2;" : "=l"(o[2]) : "l"(a), "r"(s));)
EACH3(funnels, u32, u32, u32, u32, 4, const u32 s = c % 40; o[0] = __funnelshift_l(a, b, s); o[1] = __funnelshift_r(a, b, s); o[2] = __funnelshift_lc(a, b, s); o[3] = __funnelshift_rc(a, b, s);)
EACH3(fields, u32, u32, u32, u32, 3, const u32 at = b % 36; const u32 length = c % 36; asm("bfe.u32 %0, %1, %2, %3;" : "=r"(o[0]) : "r"(a), "r"(at), "r"(length));
      asm("bfe.s32 %0, %1, %2, %3;" : "=r"(o[1]) : "r"(a), "r"(at), "r"(length)); asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(o[2]) : "r"(a), "r"(b), "r"(at), "r"(length));)
EACH3(logic3, u32, u32, u32, u32, 4, o[0] = (a & b) | (~a & c); o[1] = a ^ b ^ c; o[2] = (a & b) | (a & c) | (b & c); asm("lop3.b32 %0, %1, %2, %3, 0x1b;" : "=r"(o[3]) : "r"(a), "r"(b), "r"(c));)
EACH3(permutes, u32, u32, u32, u32, 3, asm("prmt.b32 %0, %1, %2, %3;" : "=r"(o[0]) : "r"(a), "r"(b), "r"(c)); asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(o[1]) : "r"(a), "r"(b), "r"(c)); asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(o[2]) : "r"(a), "r"(b), "r"(c));)
EACH2(masks, u32, u32, u32, 3, asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(o[0]) : "r"(a & 31), "r"(b & 31)); asm("szext.clamp.u32 %0, %1, %2;" : "=r"(o[1]) : "r"(a), "r"(b & 31));
      asm("bfind.u32 %0, %1;" : "=r"(o[2]) : "r"(a));)
EACH2(nthSet, u32, u32, int, 1, o[0] = int(__fns(a, b & 31, int(b >> 8 & 15) - 7));)
EACH2(interleave, u32, u32, u64, 1, u64 z = 0; for (int k = 0; k < 32; ++k) z |= u64(a >> k & 1) << (2 * k) | u64(b >> k & 1) << (2 * k + 1); o[0] = z;)
EACH1(gray, u32, u32, 2, o[0] = a ^ a >> 1; u32 g = o[0]; for (int s = 16; s > 0; s >>= 1) g ^= g >> s; o[1] = g;)
EACH1(crc32, u32, u32, 1, u32 crc = ~0u; for (int byte = 0; byte < 4; ++byte) { crc ^= a >> (8 * byte) & 255; for (int k = 0; k < 8; ++k) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1; } o[0] = ~crc;)
EACH1(hashes, u32, u32, 2, u32 h = a; h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16; o[0] = h; u32 f = 2166136261u; for (int k = 0; k < 4; ++k) f = (f ^ (a >> 8 * k & 255)) * 16777619u; o[1] = f;)

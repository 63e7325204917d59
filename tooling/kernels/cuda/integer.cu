// Integers of all widths.
#include "common.cuh"

typedef long long i64;
typedef unsigned long long u64;

EACH2(addSubtract, int, int, unsigned, 3, o[0] = unsigned(a) + b; o[1] = unsigned(a) - b; o[2] = -unsigned(a);)
EACH2(multiply32, int, int, int, 3, o[0] = int(unsigned(a) * b); o[1] = __mulhi(a, b); o[2] = int(__umulhi(a, b));)
EACH2(divide32, int, int, int, 2, o[0] = b == 0 || (b == -1 && a == int(0x80000000)) ? 0 : a / b; o[1] = b == 0 || b == -1 ? 0 : a % b;)
EACH2(divideUnsigned, unsigned, unsigned, unsigned, 2, o[0] = b == 0 ? 0 : a / b; o[1] = b == 0 ? 0 : a % b;)
EACH1(divideByConstants, int, int, 5, o[0] = a / 3; o[1] = a % 7; o[2] = a / -16; o[3] = int(unsigned(a) / 10u); o[4] = int(unsigned(a) % 1000u);)
EACH2(arithmetic64, i64, i64, u64, 4, o[0] = u64(a) + b; o[1] = u64(a) - b; o[2] = u64(a) * b; o[3] = u64(__mul64hi(a, b));)
EACH2(divide64, i64, i64, i64, 2, o[0] = b == 0 || b == -1 ? 0 : a / b; o[1] = b == 0 || b == -1 ? 0 : a % b;)
EACH2(divideUnsigned64, u64, u64, u64, 3, o[0] = b == 0 ? 0 : a / b; o[1] = b == 0 ? 0 : a % b; o[2] = __umul64hi(a, b);)
EACH2(widen, int, int, i64, 2, o[0] = i64(a) * b; o[1] = i64(u64(unsigned(a)) * unsigned(b));)
EACH3(multiplyAdd, int, int, int, i64, 2, o[0] = i64(a) * b + c; o[1] = i64(int(unsigned(a) * b + c));)
EACH2(multiply24, int, int, int, 2, o[0] = __mul24(a, b); o[1] = int(__umul24(a, b));)
EACH3(sumOfDifferences, int, int, unsigned, unsigned, 2, o[0] = __sad(a, b, c); o[1] = __usad(a, b, c);)
EACH3(dots, int, int, int, int, 4, o[0] = __dp4a(a, b, c); o[1] = int(__dp4a(unsigned(a), unsigned(b), unsigned(c))); o[2] = __dp2a_lo(a, b, c); o[3] = __dp2a_hi(a, b, c);)
EACH2(extremes, int, int, int, 4, o[0] = min(a, b); o[1] = max(a, b); o[2] = int(min(unsigned(a), unsigned(b))); o[3] = abs(b);)
EACH2(extremes64, i64, i64, i64, 3, o[0] = min(a, b); o[1] = max(a, b); o[2] = i64(max(u64(a), u64(b)));)
EACH2(averages, int, int, int, 4, o[0] = __hadd(a, b); o[1] = __rhadd(a, b); o[2] = int(__uhadd(a, b)); o[3] = int(__urhadd(a, b));)
EACH2(narrow16, short, short, int, 4, o[0] = short(a + b); o[1] = short(a * b); o[2] = (unsigned short)(a - b); o[3] = b == 0 ? 0 : a % b;)
EACH2(narrow8, signed char, unsigned char, int, 4, o[0] = (signed char)(a + b); o[1] = (unsigned char)(a * b); o[2] = a >> (b & 7); o[3] = b == 0 ? 0 : a / b;)
EACH2(wide128, u64, u64, u64, 4, const unsigned __int128 product = (unsigned __int128)a * b; const unsigned __int128 sum = product + ((unsigned __int128)b << 60);
      o[0] = u64(product); o[1] = u64(product >> 64); o[2] = u64(sum); o[3] = u64(sum >> 64);)
EACH2(carries, u64, u64, unsigned, 4, unsigned low, high, top; 
      asm("add.cc.u32 %0, %3, %5; addc.cc.u32 %1, %4, %6; addc.u32 %2, 0, 0;" : "=r"(low), "=r"(high), "=r"(top) : "r"(unsigned(a)), "r"(unsigned(a >> 32)), "r"(unsigned(b)), "r"(unsigned(b >> 32)));
      o[0] = low; o[1] = high; o[2] = top;
      asm("sub.cc.u32 %0, %1, %2; subc.u32 %0, 7, 0;" : "=r"(top) : "r"(unsigned(a)), "r"(unsigned(b)));
      o[3] = top;)
EACH2(pairs, unsigned, unsigned, unsigned, 4, o[0] = __vadd2(a, b); o[1] = __vsub4(a, b); o[2] = __vavgu4(a, b); o[3] = __vcmpeq4(a, b);)
EACH1(powersModulo, unsigned, unsigned, 1, unsigned result = 1; u64 base = a; for (unsigned e = a | 1; e != 0; e >>= 1) { if (e & 1) result = unsigned(result * base % 1000003); base = base * base % 1000003; } o[0] = result;)

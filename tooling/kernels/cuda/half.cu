// f16, bf16, pairs of them, and 8-bit floats. arch: compute_90
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common.cuh"

typedef unsigned short u16;
#define H(x) __ushort_as_half(x)
#define U(x) __half_as_ushort(x)
#define B(x) __ushort_as_bfloat16(x)
#define V(x) __bfloat16_as_ushort(x)

EACH2(halfBasic, u16, u16, u16, 4, o[0] = U(__hadd(H(a), H(b))); o[1] = U(__hsub(H(a), H(b))); o[2] = U(__hmul(H(a), H(b))); o[3] = __hisnan(H(a)) ? 0 : U(__hneg(H(a)));)
EACH3(halfFused, u16, u16, u16, u16, 1, o[0] = U(__hfma(H(a), H(b), H(c)));)
EACH2(halfExtremes, u16, u16, u16, 2, o[0] = U(__hmin(H(a), H(b))); o[1] = U(__hmax(H(a), H(b)));)
EACH2(halfCompare, u16, u16, int, 1, o[0] = __hlt(H(a), H(b)) | __hle(H(a), H(b)) << 1 | __heq(H(a), H(b)) << 2 | __hgt(H(a), H(b)) << 3 | __hne(H(a), H(b)) << 4;)
EACH1(halfToFloat, u16, float, 2, o[0] = __half2float(H(a)); o[1] = __bfloat162float(B(a));)
EACH1(floatToHalf, float, u16, 5, o[0] = U(__float2half_rn(a)); o[1] = U(__float2half_rz(a)); o[2] = U(__float2half_ru(a)); o[3] = U(__float2half_rd(a)); o[4] = V(__float2bfloat16_rn(a));)
EACH1(halfToInteger, u16, int, 4, o[0] = __half2int_rn(H(a)); o[1] = __half2int_rz(H(a)); o[2] = __half2int_ru(H(a)); o[3] = int(__half2uint_rd(H(a)));)
EACH1(integerToHalf, int, u16, 2, o[0] = U(__int2half_rn(a)); o[1] = U(__int2half_rz(a));)
EACH2(bf16Basic, u16, u16, u16, 3, o[0] = V(__hadd(B(a), B(b))); o[1] = V(__hmul(B(a), B(b))); o[2] = V(__hmax(B(a), B(b)));)
EACH2(halfPairs, unsigned, unsigned, unsigned, 3, const __half2 x2 = *(const __half2*)&a; const __half2 y2 = *(const __half2*)&b; const __half2 s = __hadd2(x2, y2); const __half2 p = __hmul2(x2, y2);
      const __half2 f = __hfma2(x2, y2, s); o[0] = *(const unsigned*)&s; o[1] = *(const unsigned*)&p; o[2] = *(const unsigned*)&f;)
EACH1(toFloat8, float, unsigned char, 2, o[0] = __nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E4M3); o[1] = __nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E5M2);)
EACH1(fromFloat8, unsigned char, u16, 2, const __half_raw one = __nv_cvt_fp8_to_halfraw(a, __NV_E4M3); const __half_raw two = __nv_cvt_fp8_to_halfraw(a, __NV_E5M2); o[0] = one.x; o[1] = two.x;)

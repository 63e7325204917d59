// Conversions between all kinds of numbers.
#include "common.cuh"

typedef long long i64;
typedef unsigned long long u64;

EACH1(intToFloat, int, float, 5, o[0] = __int2float_rn(a); o[1] = __int2float_rz(a); o[2] = __int2float_ru(a); o[3] = __int2float_rd(a); o[4] = __uint2float_rn(unsigned(a));)
EACH1(longToFloat, i64, float, 4, o[0] = __ll2float_rn(a); o[1] = __ll2float_rz(a); o[2] = __ll2float_ru(a); o[3] = __ull2float_rd(u64(a));)
EACH1(longToDouble, i64, double, 4, o[0] = __ll2double_rn(a); o[1] = __ll2double_rz(a); o[2] = __ll2double_ru(a); o[3] = __ull2double_rd(u64(a));)
EACH1(floatToInt, float, int, 5, o[0] = __float2int_rn(a); o[1] = __float2int_rz(a); o[2] = __float2int_ru(a); o[3] = __float2int_rd(a); o[4] = int(__float2uint_rn(a));)
EACH1(floatToLong, float, i64, 3, o[0] = __float2ll_rz(a); o[1] = __float2ll_ru(a); o[2] = i64(__float2ull_rn(a));)
EACH1(doubleToInt, double, int, 4, o[0] = __double2int_rn(a); o[1] = __double2int_rz(a); o[2] = __double2int_ru(a); o[3] = int(__double2uint_rd(a));)
EACH1(doubleToLong, double, i64, 3, o[0] = __double2ll_rn(a); o[1] = __double2ll_rz(a); o[2] = i64(__double2ull_rd(a));)
EACH1(doubleToFloat, double, float, 4, o[0] = __double2float_rn(a); o[1] = __double2float_rz(a); o[2] = __double2float_ru(a); o[3] = __double2float_rd(a);)
EACH1(floatToDouble, float, double, 1, o[0] = double(a);)
EACH1(narrowed, int, int, 4, o[0] = (signed char)a; o[1] = (unsigned char)a; o[2] = short(a); o[3] = (unsigned short)a;)
EACH1(saturated, int, int, 4, asm("cvt.sat.s8.s32 %0, %1;" : "=r"(o[0]) : "r"(a)); asm("cvt.sat.u8.s32 %0, %1;" : "=r"(o[1]) : "r"(a)); asm("cvt.sat.s16.s32 %0, %1;" : "=r"(o[2]) : "r"(a));
      asm("cvt.sat.u32.s32 %0, %1;" : "=r"(o[3]) : "r"(a));)
EACH1(saturatedFloat, float, float, 2, asm("cvt.sat.f32.f32 %0, %1;" : "=f"(o[0]) : "f"(a)); asm("cvt.rni.ftz.f32.f32 %0, %1;" : "=f"(o[1]) : "f"(a));)
EACH1(partsOfDouble, double, int, 2, o[0] = __double2hiint(a); o[1] = __double2loint(a);)
EACH2(doubleOfParts, int, int, double, 1, o[0] = __hiloint2double(a, b);)
EACH1(bitsOfFloat, float, int, 2, o[0] = __float_as_int(a); o[1] = __float_as_int(__int_as_float(__float_as_int(a) ^ int(0x80000000)));)

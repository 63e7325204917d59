// Atomic operations of all types and scopes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common.cuh"

typedef unsigned long long u64;

extern "C" {
__global__ void addIntegers(const int* in, int* sums, u64* wide, int n) {
  const int i = INDEX;
  if (i >= n) return;
  atomicAdd(&sums[0], in[i]);
  atomicSub(&sums[1], in[i]);
  atomicAdd(reinterpret_cast<unsigned*>(&sums[2 + (i & 1)]), unsigned(i));
  atomicAdd(wide, u64(in[i]) * in[i]);
}
// Small integers, so that the order of the sums does not matter.
__global__ void addFloats(const int* in, float* sums, double* wide, int n) {
  const int i = INDEX;
  if (i >= n) return;
  atomicAdd(&sums[in[i] & 3], float(in[i] & 31) * 0.25f);
  atomicAdd(wide, double(in[i] & 1023) * 0.125);
}
__global__ void addHalves(const int* in, __half* sums, __half2* pairs, __nv_bfloat16* bfloats, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const int bin = in[i] & 63;
  atomicAdd(&sums[bin], __float2half(0.5f));
  atomicAdd(&pairs[bin], __floats2half2_rn(1.0f, -0.25f));
  atomicAdd(&bfloats[bin], __float2bfloat16(0.5f));
}
__global__ void extremes(const int* in, int* out, long long* wide, int n) {
  const int i = INDEX;
  if (i >= n) return;
  atomicMin(&out[0], in[i]);
  atomicMax(&out[1], in[i]);
  atomicMin(reinterpret_cast<unsigned*>(&out[2]), unsigned(in[i]));
  atomicMax(reinterpret_cast<unsigned*>(&out[3]), unsigned(in[i]));
  const long long v = (long long)in[i] * 0x100000001ll;
  atomicMin(&wide[0], v);
  atomicMax(&wide[1], v);
  atomicMax(reinterpret_cast<u64*>(&wide[2]), u64(v));
}
__global__ void bitwise(const unsigned* in, unsigned* out, u64* wide, int n) {
  const int i = INDEX;
  if (i >= n) return;
  atomicAnd(&out[0], in[i] | 0xf0f0f0f0);
  atomicOr(&out[1], in[i] & 0x0f0f0f0f);
  atomicXor(&out[2], in[i]);
  atomicOr(&wide[0], u64(in[i] & 0xff) << 32);
  atomicXor(&wide[1], u64(in[i]) << 16);
  atomicAnd(&wide[2], ~(u64(1) << (in[i] & 63)));
}
// What each thread got back, in whatever order: all tickets, each once.
__global__ void tickets(unsigned* counters, unsigned* taken, int n) {
  const int i = INDEX;
  if (i >= n) return;
  atomicAdd(&taken[atomicAdd(&counters[0], 1u)], 1u);
  atomicAdd(&taken[n + atomicInc(&counters[1], 16)], 1u);
  atomicAdd(&taken[n + 17 + atomicDec(&counters[2], 16)], 1u);
}
__global__ void exchanges(int* cell, int* seen, int n) {
  const int i = INDEX;
  if (i < n) seen[i] = atomicExch(cell, i);
}
// A product by compare and swap, modulo a prime.
__global__ void swapLoop(const unsigned* in, unsigned* cells, u64* wide, int n) {
  const int i = INDEX;
  if (i >= n) return;
  unsigned old = cells[i & 3], assumed;
  do {
    assumed = old;
    old = atomicCAS(&cells[i & 3], assumed, unsigned(u64(assumed) * (in[i] % 1000 + 1) % 65521));
  } while (old != assumed);
  u64 wideOld = *wide, wideAssumed;
  do {
    wideAssumed = wideOld;
    wideOld = atomicCAS(wide, wideAssumed, wideAssumed + (u64(in[i]) << 8));
  } while (wideOld != wideAssumed);
}
__global__ void swapShort(unsigned short* cells, int n) {
  const int i = INDEX;
  if (i >= n) return;
  unsigned short* cell = &cells[i % 5];
  unsigned short old = *cell, assumed;
  do {
    assumed = old;
    old = atomicCAS(cell, assumed, static_cast<unsigned short>(assumed + 3));
  } while (old != assumed);
}
__global__ void sharedAtomics(const int* in, int* out, int n) {
  __shared__ int sum, low, high;
  __shared__ unsigned bits, turn;
  __shared__ float real;
  __shared__ u64 wide;
  if (threadIdx.x == 0) {
    sum = 0;
    low = 0x7fffffff;
    high = -0x7fffffff;
    bits = 0;
    turn = 0;
    real = 0;
    wide = 0;
  }
  __syncthreads();
  const int i = INDEX;
  if (i < n) {
    atomicAdd(&sum, in[i]);
    atomicMin(&low, in[i]);
    atomicMax(&high, in[i]);
    atomicXor(&bits, unsigned(in[i]));
    atomicInc(&turn, 6);
    atomicAdd(&real, float(in[i] & 7));
    atomicAdd(&wide, u64(unsigned(in[i])));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int* o = out + blockIdx.x * 8;
    o[0] = sum;
    o[1] = low;
    o[2] = high;
    o[3] = int(bits);
    o[4] = int(turn);
    o[5] = int(real);
    o[6] = int(wide);
    o[7] = int(wide >> 32);
  }
}
__global__ void scopes(const int* in, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  atomicAdd_block(&out[blockIdx.x], in[i]);
  atomicAdd_system(&out[gridDim.x], in[i]);
  int old;
  asm volatile("atom.global.acq_rel.gpu.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(out + gridDim.x + 1), "r"(in[i]) : "memory");
  if (old == 0x7fffffff) out[gridDim.x + 1] = 0;
  asm volatile("red.global.relaxed.sys.max.s32 [%0], %1;" ::"l"(out + gridDim.x + 2), "r"(in[i]) : "memory");
}
}

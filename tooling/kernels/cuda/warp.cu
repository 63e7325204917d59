// What the lanes of a warp do together. arch: compute_90
#include "common.cuh"

extern "C" {
__global__ void shuffles(const int* in, const int* from, int* out) {
  const int i = INDEX, x = in[i];
  int* o = out + i * 8;
  o[0] = __shfl_sync(~0u, x, from[i]);
  o[1] = __shfl_sync(~0u, x, from[i], 8);
  o[2] = __shfl_up_sync(~0u, x, 5);
  o[3] = __shfl_up_sync(~0u, x, 3, 16);
  o[4] = __shfl_down_sync(~0u, x, 7);
  o[5] = __shfl_down_sync(~0u, x, 1, 4);
  o[6] = __shfl_xor_sync(~0u, x, 21);
  o[7] = __shfl_xor_sync(~0u, x, 6, 8);
}
__global__ void shuffleDoubles(const double* in, double* out) {
  const int i = INDEX;
  out[i] = __shfl_xor_sync(~0u, in[i], 13) + __shfl_down_sync(~0u, in[i], 2);
}
__global__ void votes(const int* in, int* out) {
  const int i = INDEX, x = in[i];
  int* o = out + i * 4;
  o[0] = int(__ballot_sync(~0u, x & 1));
  o[1] = __all_sync(~0u, x > 2) + 2 * __any_sync(~0u, x > 200);
  o[2] = int(__match_any_sync(~0u, x & 7));
  int isAll;
  o[3] = int(__match_all_sync(~0u, x >> 30, &isAll)) ^ isAll;
}
__global__ void votesOfSome(const int* in, unsigned* out) {
  const int i = INDEX, x = in[i];
  unsigned result;
  if (x & 1) {
    const unsigned mask = __activemask();
    result = __ballot_sync(mask, x & 2) + __popc(mask);
  } else {
    const unsigned mask = __activemask();
    result = __ballot_sync(mask, x & 4) ^ __popc(mask);
  }
  out[i] = result;
}
__global__ void reductions(const int* in, int* out) {
  const int i = INDEX, x = in[i];
  int* o = out + i * 7;
  o[0] = __reduce_add_sync(~0u, x);
  o[1] = __reduce_min_sync(~0u, x);
  o[2] = __reduce_max_sync(~0u, x);
  o[3] = int(__reduce_max_sync(~0u, unsigned(x)));
  o[4] = int(__reduce_and_sync(~0u, unsigned(x) | 0xff00ff00));
  o[5] = int(__reduce_or_sync(~0u, unsigned(x) & 0x10101010));
  o[6] = int(__reduce_xor_sync(~0u, unsigned(x)));
}
// Halves of a warp meet apart from each other.
__global__ void reductionsOfHalves(const int* in, int* out) {
  const int i = INDEX, lane = threadIdx.x & 31;
  out[i] = lane < 13 ? __reduce_add_sync(0x1fff, in[i]) : __reduce_max_sync(0xffffe000, in[i]);
}
__global__ void exchangeInShared(const int* in, int* out) {
  __shared__ int v[64];
  const int i = INDEX, t = threadIdx.x;
  v[t] = in[i];
  __syncwarp();
  for (int round = 0; round < 5; ++round) {
    const int other = v[t ^ 1 << round];
    __syncwarp();
    v[t] = v[t] * 3 + other;
    __syncwarp();
  }
  out[i] = v[t];
}
// One atomic operation for all lanes that want the same.
__global__ void aggregated(const int* in, int* counters, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const int bin = in[i] & 3;
  const unsigned active = __activemask(), same = __match_any_sync(active, bin);
  const int leader = __ffs(same) - 1, lane = threadIdx.x & 31;
  int base = 0;
  if (lane == leader) base = atomicAdd(&counters[bin], __popc(same));
  base = __shfl_sync(same, base, leader);
  atomicAdd(&out[bin * n + base + __popc(same & ((1u << lane) - 1))], 1);
}
__global__ void transposeInWarp(const int* in, int* out) {
  const int lane = threadIdx.x & 31, base = (INDEX - lane) * 8;
  int v[8];
  for (int k = 0; k < 8; ++k) v[k] = in[base + k * 32 + lane];
  for (int k = 0; k < 8; ++k) out[base + lane * 8 + k] = __shfl_sync(~0u, v[k], lane ^ k);
}
__global__ void leaders(unsigned* out) {
  const int i = INDEX;
  unsigned lane, is;
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(lane), "=r"(is));
  unsigned lower, id;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lower));
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  out[i] = lane << 24 | is << 16 | (__popc(lower) == int(id)) << 8 | id;
}
}

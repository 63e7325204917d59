// Copies that go on by themselves, and barriers in shared memory.
#include <cuda_pipeline.h>

#include <cuda/barrier>

#include "common.cuh"

// The barrier is made by its `init`.
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" {
// The next tile is under way while this one is summed.
__global__ void pipelined(const int4* in, int* out, int tiles) {
  __shared__ int4 v[2][64];
  const int t = threadIdx.x;
  int sum = 0;
  __pipeline_memcpy_async(&v[0][t], &in[blockIdx.x * tiles * 64 + t], sizeof(int4));
  __pipeline_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) __pipeline_memcpy_async(&v[(tile + 1) & 1][t], &in[(blockIdx.x * tiles + tile + 1) * 64 + t], sizeof(int4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const int4 own = v[tile & 1][63 - t];
    sum = sum * 31 + (own.x ^ own.y) + (own.z ^ own.w);
    __syncthreads();
  }
  out[INDEX] = sum;
}
// Arrivals and waits apart, on a barrier in shared memory.
__global__ void splitBarrier(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int v[96];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int kept = in[INDEX];
  for (int round = 0; round < 3; ++round) {
    v[threadIdx.x] = kept;
    auto token = barrier.arrive();
    kept = kept * 3 + round;
    barrier.wait(std::move(token));
    kept += v[(threadIdx.x + 1) % blockDim.x];
    barrier.arrive_and_wait();
  }
  out[INDEX] = kept;
}
}

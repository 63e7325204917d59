// Matrix instructions, copies that go on by themselves, and barriers in shared memory.
#include <cuda_pipeline.h>
#include <mma.h>

#include <cuda/barrier>

#include "common.cuh"

// The barrier is made by its `init`.
#pragma nv_diag_suppress static_var_with_dynamic_init

using namespace nvcuda;

extern "C" {
// 16 x 16 tiles of f16 with sums in f32; the sizes are multiples of 16.
__global__ void wmmaHalf(const __half* a, const __half* b, float* c, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + i, k);
    wmma::load_matrix_sync(fb, b + blockIdx.x * 16 * k + i, k);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}
__global__ void wmmaBytes(const signed char* a, const signed char* b, int* c, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::fill_fragment(sum, 0);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + i, k);
    wmma::load_matrix_sync(fb, b + blockIdx.x * 16 * k + i, k);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}
// A tile of 16 x 8 by mma and ldmatrix, from shared memory.
__global__ void mmaLoaded(const __half* a, const __half* b, float* c) {
  __shared__ __half ta[16 * 16], tb[8 * 16];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) ta[i] = a[blockIdx.x * 256 + i];
  for (int i = lane; i < 128; i += 32) tb[i] = b[blockIdx.x * 128 + i];
  __syncwarp();
  unsigned fa[4], fb[2];
  const auto atA = unsigned(__cvta_generic_to_shared(ta + lane % 16 * 16 + lane / 16 * 8)), atB = unsigned(__cvta_generic_to_shared(tb + lane % 8 * 16 + lane / 8 % 2 * 8));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(atA));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(fb[0]), "=r"(fb[1]) : "r"(atB));
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  float* o = c + blockIdx.x * 128 + lane / 4 * 8 + lane % 4 * 2;
  o[0] = d[0];
  o[1] = d[1];
  o[64] = d[2];
  o[65] = d[3];
}
__global__ void mmaDouble(const double* a, const double* b, double* c) {
  const int lane = threadIdx.x;
  double d[2] = {};
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(d[0]), "+d"(d[1]) : "d"(a[blockIdx.x * 32 + lane]), "d"(b[blockIdx.x * 32 + lane]));
  c[blockIdx.x * 64 + lane / 4 * 8 + lane % 4 * 2] = d[0];
  c[blockIdx.x * 64 + lane / 4 * 8 + lane % 4 * 2 + 1] = d[1];
}
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
EACH3(videoInstructions, int, int, int, int, 3, asm("vadd.s32.s32.s32.sat %0, %1, %2;" : "=r"(o[0]) : "r"(a), "r"(b));
      asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(o[1]) : "r"(a), "r"(b), "r"(c)); asm("vmax2.s32.s32.s32 %0, %1, %2, %3;" : "=r"(o[2]) : "r"(a), "r"(b), "r"(c));)
}

// Matrix instructions.
#include <mma.h>

#include "common.cuh"

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
}

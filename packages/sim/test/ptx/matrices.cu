// Matrix products on the tensor cores: mma with ldmatrix, and wmma with fragments that the kernel modifies.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__device__ unsigned inShared(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

extern "C" {
// C = A * B of f16, with f32 sums. Rows: A has k elements, B and C have n. Four warps compute 64 x 64, each 32 x 32.
__global__ void __launch_bounds__(128) matmul(const half* a, const half* b, float* c, int n, int k) {
  __shared__ __align__(16) half tileA[64][24], tileB[16][72];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int top = warp / 2 * 32, left = warp % 2 * 32;
  const half *fromA = a + blockIdx.y * 64 * k, *fromB = b + blockIdx.x * 64;
  float sums[2][4][4] = {};
  for (int start = 0; start < k; start += 16) {
    *reinterpret_cast<uint4*>(&tileA[threadIdx.x / 2][threadIdx.x % 2 * 8]) = *reinterpret_cast<const uint4*>(fromA + threadIdx.x / 2 * k + start + threadIdx.x % 2 * 8);
    *reinterpret_cast<uint4*>(&tileB[threadIdx.x / 8][threadIdx.x % 8 * 8]) = *reinterpret_cast<const uint4*>(fromB + (start + threadIdx.x / 8) * n + threadIdx.x % 8 * 8);
    __syncthreads();
    unsigned partA[2][4], partB[4][2];
    for (int i = 0; i < 2; ++i) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(partA[i][0]), "=r"(partA[i][1]), "=r"(partA[i][2]), "=r"(partA[i][3])
                   : "r"(inShared(&tileA[top + i * 16 + lane % 16][lane / 16 * 8])));
    }
    for (int j = 0; j < 4; ++j) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                   : "=r"(partB[j][0]), "=r"(partB[j][1])
                   : "r"(inShared(&tileB[lane % 16][left + j * 8])));
    }
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 4; ++j) {
        float* sum = sums[i][j];
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(partA[i][0]), "r"(partA[i][1]), "r"(partA[i][2]), "r"(partA[i][3]), "r"(partB[j][0]), "r"(partB[j][1]));
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int part = 0; part < 4; ++part) {
        const int row = blockIdx.y * 64 + top + i * 16 + lane / 4 + part / 2 * 8, column = blockIdx.x * 64 + left + j * 8 + lane % 4 * 2 + part % 2;
        c[row * n + column] = sums[i][j][part];
      }
    }
  }
}
__global__ void halves(const half* a, const half* b, float* c, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 1.0f);
  for (int at = 0; at < k; at += 16) {
    wmma::load_matrix_sync(left, a + at, k);
    wmma::load_matrix_sync(right, b + at, k);
    for (int i = 0; i < left.num_elements; ++i) left.x[i] = left.x[i] * half(2.0f);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 0.5f;
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
__global__ void tall(const half* a, const half* b, half* c) {
  __shared__ half box[32 * 16];
  for (int i = threadIdx.x; i < 32 * 16; i += 32) box[i] = a[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 32, 8, 16, half> sum;
  wmma::load_matrix_sync(left, box, 32);
  wmma::load_matrix_sync(right, b, 8);
  wmma::fill_fragment(sum, __float2half(1.0f));
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
__global__ void wide(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  wmma::fragment<wmma::matrix_a, 8, 32, 16, __nv_bfloat16, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, __nv_bfloat16, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 32, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_col_major);
}
__global__ void tensorFloats(const float* a, const float* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::load_matrix_sync(left, a, 8);
  wmma::load_matrix_sync(right, b, 16);
  wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
  for (int i = 0; i < left.num_elements; ++i) left.x[i] = wmma::__float_to_tf32(left.x[i]);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
__global__ void bytes(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::fill_fragment(sum, 3);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
__global__ void doubles(const double* a, const double* b, double* c) {
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
  wmma::fill_fragment(sum, 0.5);
  wmma::load_matrix_sync(left, a, 4);
  wmma::load_matrix_sync(right, b, 4);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
}

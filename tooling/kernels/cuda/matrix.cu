// Products of matrices and small systems of equations.
#include "common.cuh"

extern "C" {
__global__ void multiplyPlain(const float* a, const float* b, float* c, int m, int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum = fmaf(a[row * k + i], b[i * n + column], sum);
  c[row * n + column] = sum;
}
__global__ void multiplyTiled(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[16][16], tb[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y, column = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty;
  float sum = 0;
  for (int start = 0; start < k; start += 16) {
    ta[ty][tx] = row < m && start + tx < k ? a[row * k + start + tx] : 0;
    tb[ty][tx] = column < n && start + ty < k ? b[(start + ty) * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) sum = fmaf(ta[ty][i], tb[i][tx], sum);
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
// Four results a thread, in registers.
__global__ void multiplyBlocked(const double* a, const double* b, double* c, int n) {
  const int column = (blockIdx.x * blockDim.x + threadIdx.x) * 2, row = (blockIdx.y * blockDim.y + threadIdx.y) * 2;
  if (row + 1 >= n || column + 1 >= n) return;
  double sums[2][2] = {};
  for (int i = 0; i < n; ++i) {
    for (int r = 0; r < 2; ++r) {
      for (int s = 0; s < 2; ++s) sums[r][s] = fma(a[(row + r) * n + i], b[i * n + column + s], sums[r][s]);
    }
  }
  for (int r = 0; r < 2; ++r) {
    for (int s = 0; s < 2; ++s) c[(row + r) * n + column + s] = sums[r][s];
  }
}
__global__ void multiplyBytes(const int* a, const int* b, int* c, int m, int n, int words) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  int sum = 0;
  for (int i = 0; i < words; ++i) sum = __dp4a(a[row * words + i], b[column * words + i], sum);
  c[row * n + column] = sum;
}
__global__ void matrixVector(const float* a, const float* x, float* y, int rows, int columns) {
  const int row = INDEX / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum = fmaf(a[row * columns + i], x[i], sum);
  for (int d = 16; d > 0; d /= 2) sum = sum + __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) y[row] = sum;
}
// Rows of a sparse matrix.
__global__ void sparseVector(const int* starts, const int* columns, const double* values, const double* x, double* y, int rows) {
  const int row = INDEX;
  if (row >= rows) return;
  double sum = 0;
  for (int i = starts[row]; i < starts[row + 1]; ++i) sum = sum + values[i] * x[columns[i]];
  y[row] = sum;
}
__global__ void determinants(const double* in, double* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  double m[5][5], det = 1;
  for (int r = 0; r < 5; ++r) {
    for (int c = 0; c < 5; ++c) m[r][c] = in[(i * 5 + r) * 5 + c];
  }
  for (int k = 0; k < 5; ++k) {
    int best = k;
    for (int r = k + 1; r < 5; ++r) {
      if (fabs(m[r][k]) > fabs(m[best][k])) best = r;
    }
    if (m[best][k] == 0) {
      det = 0;
      break;
    }
    if (best != k) {
      det = -det;
      for (int c = 0; c < 5; ++c) {
        const double kept = m[k][c];
        m[k][c] = m[best][c];
        m[best][c] = kept;
      }
    }
    det = det * m[k][k];
    for (int r = k + 1; r < 5; ++r) {
      const double factor = m[r][k] / m[k][k];
      for (int c = k; c < 5; ++c) m[r][c] = m[r][c] - factor * m[k][c];
    }
  }
  out[i] = det;
}
// A matrix a block, in shared memory, in place.
__global__ void cholesky(const float* in, float* out, int n) {
  extern __shared__ float l[];
  const int t = threadIdx.x;
  for (int k = t; k < n * n; k += blockDim.x) l[k] = in[blockIdx.x * n * n + k];
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    if (t == 0) l[k * n + k] = sqrtf(l[k * n + k]);
    __syncthreads();
    for (int r = k + 1 + t; r < n; r += blockDim.x) l[r * n + k] = l[r * n + k] / l[k * n + k];
    __syncthreads();
    for (int r = k + 1 + t; r < n; r += blockDim.x) {
      for (int c = k + 1; c <= r; ++c) l[r * n + c] = l[r * n + c] - l[r * n + k] * l[c * n + k];
    }
    __syncthreads();
  }
  for (int k = t; k < n * n; k += blockDim.x) out[blockIdx.x * n * n + k] = k % n <= k / n ? l[k] : 0;
}
}

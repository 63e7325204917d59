// Reductions.
#include "common.cuh"

extern "C" {
__global__ void sumIntegers(const int* in, int* out, int n) {
  __shared__ int part[32];
  int sum = 0;
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}
// A tree in shared memory: always the same order.
__global__ void sumFloats(const float* in, float* out, int n) {
  __shared__ float part[256];
  const int i = INDEX;
  part[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
__global__ void dot(const double* x, const double* y, double* out, int n) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) sum = fma(x[i], y[i], sum);
  for (int d = 1; d < 32; d *= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) *out = sum;
}
__global__ void largestAt(const float* in, unsigned long long* out, int n) {
  unsigned long long best = 0;
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
    int bits = __float_as_int(in[i]);
    bits = bits < 0 ? ~bits : bits | int(0x80000000);
    const unsigned long long key = (unsigned long long)unsigned(bits) << 32 | unsigned(~i);
    best = best < key ? key : best;
  }
  atomicMax(out, best);
}
__global__ void rowSums(const int* in, const int* starts, long long* out, int rows) {
  const int row = INDEX / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  long long sum = 0;
  for (int i = starts[row] + lane; i < starts[row + 1]; i += 32) sum += in[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) out[row] = sum;
}
// The last block to finish adds what all blocks have written.
__device__ unsigned finished;
__global__ void sumByLastBlock(const int* in, volatile long long* parts, long long* out, int n) {
  __shared__ long long shared[128];
  __shared__ bool isLast;
  long long sum = 0;
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (threadIdx.x < d) shared[threadIdx.x] += shared[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = shared[0];
    __threadfence();
    isLast = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!isLast || threadIdx.x != 0) return;
  sum = 0;
  for (int block = 0; block < gridDim.x; ++block) sum += parts[block];
  *out = sum;
}
__global__ void meanAndVariance(const float* in, double* out, int n) {
  __shared__ double sums[64], squares[64];
  double sum = 0, square = 0;
  for (int i = threadIdx.x; i < n; i += 64) {
    sum += in[i];
    square += double(in[i]) * in[i];
  }
  sums[threadIdx.x] = sum;
  squares[threadIdx.x] = square;
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (threadIdx.x < d) {
      sums[threadIdx.x] += sums[threadIdx.x + d];
      squares[threadIdx.x] += squares[threadIdx.x + d];
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const double mean = sums[0] / n;
  out[0] = mean;
  out[1] = squares[0] / n - mean * mean;
}
}

// Kernels with one fault each, for the checker. Compiled with -lineinfo, so that reports name these lines.
extern "C" {
__global__ void outOfRange(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) data[i] = i;
}
__global__ void misaligned(char* data) { *reinterpret_cast<int*>(data + (threadIdx.x == 37 ? 2 : 4 * threadIdx.x)) = 1; }
__global__ void unwrittenGlobal(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x] + 1; }
__global__ void unwrittenHeap(int* out) {
  int* made = new int[8];
  made[0] = 1;
  out[threadIdx.x] = made[0] + made[threadIdx.x + 2];
  delete[] made;
}
__global__ void unwrittenShared(int* out) {
  __shared__ int v[64];
  if (threadIdx.x != 9) v[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = v[63 - threadIdx.x];
}
__global__ void readTooEarly(const int* in, int* out) {
  __shared__ int v[64];
  v[threadIdx.x] = 0;
  __syncthreads();
  v[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = v[63 - threadIdx.x];
}
__global__ void writeTooEarly(int* out) {
  __shared__ int v[64];
  v[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const int other = v[(threadIdx.x + 32) % 64];
  v[threadIdx.x] = other;
  __syncthreads();
  out[threadIdx.x] = v[threadIdx.x];
}
__global__ void bothWrite(int* out) {
  __shared__ int v;
  if (threadIdx.x % 32 == 0) v = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = v;
}
// Not a fault: all write the same value.
__global__ void allWriteOne(int* out) {
  __shared__ int v;
  v = out[0] + 1;
  __syncthreads();
  out[threadIdx.x] = v;
}
// The lanes of a warp run together here, but not necessarily on hardware.
__global__ void noSyncwarp(int* out) {
  __shared__ int v[32];
  v[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = v[threadIdx.x ^ 1];
}
__global__ void atomicAndNot(int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  out[threadIdx.x] = sum;
}
__global__ void flagWithoutFence(int* out) {
  __shared__ int data;
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    data = out[1] + 5;
    flag = 1;
  } else if (threadIdx.x == 0) {
    while (flag == 0) {
    }
    __threadfence_block();
    out[0] = data;
  }
}
__global__ void halfABarrier(int* out) {
  __shared__ int v[96];
  v[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 64) {
    v[threadIdx.x] = 1;
    asm volatile("bar.sync 2, 64;" ::: "memory");
  } else {
    v[threadIdx.x] = 2;
  }
  out[threadIdx.x] = v[(threadIdx.x + 32) % 96];
}
__global__ void leftBefore(int* out, int n) {
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] += out[0];
}
__global__ void barrierInBranch(int* out) {
  if (threadIdx.x % 2 == 0) {
    out[threadIdx.x] = 1;
    __syncthreads();
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();
  }
  out[threadIdx.x] += 1;
}
__global__ void differentBarriers(int* out) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  out[threadIdx.x] = 1;
}
}

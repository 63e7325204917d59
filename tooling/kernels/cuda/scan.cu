// Prefix sums and what is made of them.
#include "common.cuh"

extern "C" {
__global__ void scanWarps(const int* in, int* out, int n) {
  const int i = INDEX, lane = threadIdx.x % 32;
  int v = i < n ? in[i] : 0;
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(~0u, v, d);
    if (lane >= d) v += other;
  }
  if (i < n) out[i] = v;
}
__global__ void scanBlock(const int* in, int* out, int n) {
  __shared__ int buffers[2][256];
  const int i = INDEX, t = threadIdx.x;
  int from = 0;
  buffers[0][t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    buffers[1 - from][t] = buffers[from][t] + (t >= d ? buffers[from][t - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  if (i < n) out[i] = buffers[from][t];
}
// Up and down a tree; exclusive.
__global__ void scanTree(const int* in, int* out) {
  __shared__ int v[512];
  const int t = threadIdx.x;
  v[2 * t] = in[2 * t];
  v[2 * t + 1] = in[2 * t + 1];
  int stride = 1;
  for (int d = 256; d > 0; d /= 2, stride *= 2) {
    __syncthreads();
    if (t < d) v[stride * (2 * t + 2) - 1] += v[stride * (2 * t + 1) - 1];
  }
  if (t == 0) v[511] = 0;
  for (int d = 1; d < 512; d *= 2) {
    stride /= 2;
    __syncthreads();
    if (t < d) {
      const int low = stride * (2 * t + 1) - 1, high = stride * (2 * t + 2) - 1, kept = v[low];
      v[low] = v[high];
      v[high] += kept;
    }
  }
  __syncthreads();
  out[2 * t] = v[2 * t];
  out[2 * t + 1] = v[2 * t + 1];
}
// One pass over many blocks: each looks back at the states of those before it. state: 0 none, 1 own sum, 2 whole prefix.
__device__ unsigned nextTile;
__global__ void scanLookBack(const int* in, int* out, unsigned long long* states, int n) {
  __shared__ int sums[128];
  __shared__ int before, tile;
  const int t = threadIdx.x;
  if (t == 0) tile = int(atomicAdd(&nextTile, 1u));
  __syncthreads();
  const int i = tile * 128 + t, own = i < n ? in[i] : 0;
  sums[t] = own;
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    const int v = t >= d ? sums[t - d] : 0;
    __syncthreads();
    sums[t] += v;
    __syncthreads();
  }
  if (t == 0) {
    int prefix = 0;
    const unsigned total = unsigned(sums[127]);
    if (tile > 0) {
      atomicExch(&states[tile], 1ull << 32 | total);
      for (int at = tile - 1; at >= 0;) {
        const unsigned long long state = atomicAdd(&states[at], 0ull);
        if (state >> 32 == 0) continue;
        prefix += int(unsigned(state));
        if (state >> 32 == 2) break;
        --at;
      }
    }
    atomicExch(&states[tile], 2ull << 32 | (total + unsigned(prefix)));
    before = prefix;
  }
  __syncthreads();
  if (i < n) out[i] = sums[t] + before;
}
// Keeps what is positive, in order.
__global__ void compact(const int* in, int* out, int* count, int n) {
  __shared__ int offsets[33];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int base = 0;
  for (int start = 0; start < n; start += blockDim.x) {
    const int i = start + t;
    const bool isKept = i < n && in[i] > 0;
    const unsigned mask = __ballot_sync(~0u, isKept);
    if (lane == 0) offsets[warp] = __popc(mask);
    __syncthreads();
    if (t == 0) {
      int sum = 0;
      for (int w = 0; w < blockDim.x / 32; ++w) {
        const int own = offsets[w];
        offsets[w] = sum;
        sum += own;
      }
      offsets[32] = sum;
    }
    __syncthreads();
    if (isKept) out[base + offsets[warp] + __popc(mask & ((1u << lane) - 1))] = in[i];
    base += offsets[32];
    __syncthreads();
  }
  if (t == 0) *count = base;
}
__global__ void scanSegments(const int* in, const unsigned char* heads, int* out, int n) {
  const int i = INDEX, lane = threadIdx.x % 32;
  int v = i < n ? in[i] : 0, head = i < n ? heads[i] : 1;
  for (int d = 1; d < 32; d *= 2) {
    const int otherV = __shfl_up_sync(~0u, v, d), otherHead = __shfl_up_sync(~0u, head, d);
    if (lane >= d && !head) {
      v += otherV;
      head = otherHead;
    }
  }
  if (i < n) out[i] = v;
}
}

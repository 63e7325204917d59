// Operations of all lanes of a warp, or of all threads of a block.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" {
__global__ void shuffles(const int* in, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  const int x = in[i];
  int* to = out + i * 8;
  to[0] = __shfl_sync(~0u, x, (lane * 7) & 31);
  to[1] = __shfl_up_sync(~0u, x, 3);
  to[2] = __shfl_down_sync(~0u, x, 5, 16);
  to[3] = __shfl_xor_sync(~0u, x, 9);
  to[4] = __ballot_sync(~0u, x & 1);
  to[5] = __all_sync(~0u, x > -100) * 2 + __any_sync(~0u, x > 100);
  to[6] = __match_any_sync(~0u, x & 3);
  to[7] = __reduce_add_sync(~0u, x);
}
__global__ void blockSum(const float* in, float* out, int n) {
  __shared__ float part[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}
// Each lane takes the lock by itself. This only ends with independent thread scheduling.
__global__ void lockEachLane(int* lock, int* count) {
  bool isDone = false;
  while (!isDone) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *(volatile int*)count = *(volatile int*)count + 1;
      __threadfence();
      atomicExch(lock, 0);
      isDone = true;
    }
  }
}
// Each lane waits for the lane before it.
__global__ void chain(volatile int* flags) {
  const int i = threadIdx.x;
  if (i > 0) {
    while (flags[i - 1] == 0) {
    }
  }
  flags[i] = i + 1;
}
__global__ void divergent(const int* in, int* out) {
  const int i = threadIdx.x;
  int x = in[i], steps = 0;
  while (x != 1 && steps < 1000) {
    if (x % 2 == 0) x /= 2;
    else x = 3 * x + 1;
    ++steps;
  }
  out[i] = steps;
  __syncwarp();
  out[i] += __popc(__activemask()) * 10000;
}
__global__ void tiles(int* out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int sum = threadIdx.x;
  if (tile.meta_group_rank() % 2 == 0) {
    for (int d = 4; d > 0; d /= 2) sum += tile.shfl_xor(sum, d);
  } else {
    sum = tile.ballot(threadIdx.x % 3 == 0);
  }
  tile.sync();
  out[threadIdx.x] = sum;
}
__global__ void partialBarrier(int* out) {
  __shared__ int box[64];
  box[threadIdx.x & 63] = 0;
  __syncthreads();
  if (threadIdx.x < 64) {
    box[threadIdx.x] = threadIdx.x * 3;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = box[63 - threadIdx.x];
  } else {
    out[threadIdx.x] = __syncthreads_count(0) + 7;
    return;
  }
  out[threadIdx.x] += __syncthreads_count(threadIdx.x < 10);
}
__global__ void earlyExit(int* out) {
  if (threadIdx.x >= 40) return;
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  __syncthreads();
  out[threadIdx.x] = sum;
}
__global__ void gridSync(int* data, int* out) {
  auto grid = cg::this_grid();
  const int i = grid.thread_rank(), n = grid.size();
  data[i] = i;
  grid.sync();
  const int other = data[n - 1 - i];
  grid.sync();
  data[i] = other * 2;
  grid.sync();
  out[i] = data[(i + 1) % n];
}
__global__ void __cluster_dims__(2, 1, 1) clusterExchange(int* out) {
  __shared__ int box[32];
  auto cluster = cg::this_cluster();
  box[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
  cluster.sync();
  const int* other = cluster.map_shared_rank(box, cluster.block_rank() ^ 1);
  out[blockIdx.x * blockDim.x + threadIdx.x] = other[31 - threadIdx.x];
  cluster.sync();
}
}

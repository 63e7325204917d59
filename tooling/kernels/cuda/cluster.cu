// Clusters of blocks, and each other's shared memory. arch: compute_90
#include <cooperative_groups.h>

#include "common.cuh"

namespace cg = cooperative_groups;

extern "C" {
__global__ void __cluster_dims__(2, 2, 1) ranks(int* out) {
  const auto cluster = cg::this_cluster();
  const int i = int((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x);
  out[i] = int(cluster.block_rank() * 1000000 + cluster.num_blocks() * 100000 + cluster.thread_rank() * 100 + cluster.block_index().x * 10 + cluster.block_index().y);
}
__global__ void __cluster_dims__(4, 1, 1) rotate(const int* in, int* out) {
  __shared__ int v[64];
  const auto cluster = cg::this_cluster();
  v[threadIdx.x] = in[INDEX];
  cluster.sync();
  const int* next = cluster.map_shared_rank(v, (cluster.block_rank() + 1) % cluster.num_blocks());
  out[INDEX] = next[63 - threadIdx.x];
  cluster.sync();
}
__global__ void __cluster_dims__(4, 1, 1) clusterHistogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[64];  // of 256, in four blocks
  const auto cluster = cg::this_cluster();
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  cluster.sync();
  for (int i = INDEX; i < n; i += int(gridDim.x * blockDim.x)) atomicAdd(cluster.map_shared_rank(&bins[in[i] & 63], in[i] >> 6), 1u);
  cluster.sync();
  if (threadIdx.x < 64) atomicAdd(&out[cluster.block_rank() * 64 + threadIdx.x], bins[threadIdx.x]);
}
__global__ void __cluster_dims__(8, 1, 1) clusterSum(const int* in, int* out) {
  __shared__ int sum;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  cluster.sync();
  atomicAdd(cluster.map_shared_rank(&sum, 0), in[INDEX]);
  cluster.sync();
  out[INDEX] = *cluster.map_shared_rank(&sum, 0) + int(cluster.block_rank());
  cluster.sync();
}
__global__ void __cluster_dims__(2, 1, 1) writeToOther(const int* in, int* out) {
  __shared__ int v[96];
  const auto cluster = cg::this_cluster();
  int* other = cluster.map_shared_rank(v, cluster.block_rank() ^ 1);
  for (int k = 0; k < 3; ++k) other[3 * threadIdx.x + k] = in[INDEX] * (k + 1);
  cluster.barrier_arrive();
  cluster.barrier_wait();
  out[INDEX] = v[threadIdx.x] + v[95 - threadIdx.x];
}
}

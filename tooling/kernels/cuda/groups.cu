// Cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "common.cuh"

namespace cg = cooperative_groups;

extern "C" {
__global__ void tiles(const int* in, int* out) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = int(block.group_index().x * block.size() + block.thread_rank());
  int sum = in[i];
  for (int d = tile.size() / 2; d > 0; d /= 2) sum += tile.shfl_xor(sum, d);
  out[i] = sum * 100 + int(tile.meta_group_rank()) * 10 + int(tile.thread_rank()) + int(tile.ballot(in[i] & 1));
}
__global__ void reduceTiles(const int* in, int* out) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int i = INDEX;
  out[i] = cg::reduce(tile, in[i], cg::plus<int>()) ^ cg::reduce(tile, in[i], cg::greater<int>()) ^ cg::reduce(tile, in[i], cg::bit_xor<int>());
}
__global__ void scanTiles(const int* in, int* out) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = INDEX;
  out[2 * i] = cg::inclusive_scan(tile, in[i]);
  out[2 * i + 1] = cg::exclusive_scan(tile, in[i], cg::plus<int>());
}
__global__ void coalesced(const int* in, int* out) {
  const int i = INDEX;
  out[i] = -1;
  if (in[i] % 3 != 0) {
    const auto active = cg::coalesced_threads();
    out[i] = int(active.thread_rank() * 100 + active.size()) + active.shfl(in[i], 0) * 10000;
  }
}
__global__ void partitions(const int* in, int* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = INDEX;
  const auto same = cg::labeled_partition(warp, in[i] & 3);
  const auto half = cg::binary_partition(warp, (in[i] & 8) != 0);
  out[i] = cg::reduce(same, in[i] & 255, cg::plus<int>()) + int(half.size()) * 100000;
}
// Every round needs what other blocks wrote in the round before.
__global__ void gridRounds(int* v, int* other, int rounds) {
  const auto grid = cg::this_grid();
  const int i = int(grid.thread_rank()), n = int(grid.size());
  for (int round = 0; round < rounds; ++round) {
    other[i] = v[(i + 97) % n] + v[(i + n - 31) % n] * 2 + round;
    grid.sync();
    v[i] = other[(i + 5) % n] ^ i;
    grid.sync();
  }
}
__global__ void blockGroup(const int* in, int* out) {
  __shared__ int v[128];
  const auto block = cg::this_thread_block();
  const unsigned t = block.thread_rank();
  v[t] = in[INDEX];
  block.sync();
  const int neighbour = v[(t + 1) % block.num_threads()];
  block.sync();
  v[t] += neighbour;
  cg::sync(block);
  out[INDEX] = v[block.num_threads() - 1 - t] + int(block.group_index().x) + int(block.dim_threads().x);
}
// Tiles of several warps: their barriers are in the system's part of the shared memory.
__global__ void largeTiles(const int* in, int* out) {
  __shared__ cg::block_tile_memory<256> scratch;
  const auto block = cg::this_thread_block(scratch);
  const auto large = cg::tiled_partition<128>(block);
  const auto small = cg::tiled_partition<64>(block);
  const int i = INDEX;
  const int sum = cg::reduce(large, in[i], cg::plus<int>());
  small.sync();
  out[i] = sum + cg::reduce(small, in[i], cg::bit_xor<int>()) * 3 + int(large.meta_group_rank()) + large.shfl(in[i], 77);
}
}

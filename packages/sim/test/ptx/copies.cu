// Asynchronous copies, and barriers that wait for copies and for threads.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda/std/utility>
namespace cg = cooperative_groups;

extern "C" {
// Each block reverses its 256 numbers.
__global__ void groupCopy(const int* in, int* out) {
  __shared__ __align__(16) int box[256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, box, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof box));
  cg::wait(block);
  out[blockIdx.x * 256 + threadIdx.x] = box[255 - threadIdx.x];
}
// Two stages: one is used while the next one is copied.
__global__ void pipelined(const int* in, int* out, int rounds) {
  constexpr int stages = 2;
  __shared__ int box[stages][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0, next = 0;
  for (int round = 0; round < rounds; ++round) {
    for (; next < rounds && next < round + stages; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, box[next % stages], in + next * 128, sizeof box[0], pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += box[round % stages][127 - threadIdx.x] * (round + 1);
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
__global__ void threadPipeline(const int4* in, int4* out) {
  __shared__ int4 box[2][64];
  auto pipe = cuda::make_pipeline();
  for (int stage = 0; stage < 2; ++stage) {
    pipe.producer_acquire();
    cuda::memcpy_async(&box[stage][threadIdx.x], in + stage * 64 + threadIdx.x, sizeof(int4), pipe);
    pipe.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  __syncthreads();
  int4 value = box[0][63 - threadIdx.x];
  pipe.consumer_release();
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  __syncthreads();
  value.x += box[1][threadIdx.x].x;
  out[threadIdx.x] = value;
}
// One warp produces numbers and the others consume them, through a double buffer.
__global__ void producerAndConsumers(int* out, int count) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ Barrier full[2], empty[2];
  __shared__ int box[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) init(&full[i], blockDim.x), init(&empty[i], blockDim.x);
  }
  __syncthreads();
  if (warp == 0) {
    for (int i = 0; i < count; ++i) {
      empty[i % 2].arrive_and_wait();
      box[i % 2][lane] = i * 1000 + lane;
      (void)full[i % 2].arrive();
    }
  } else {
    int sum = 0;
    (void)empty[0].arrive(), (void)empty[1].arrive();
    for (int i = 0; i < count; ++i) {
      full[i % 2].arrive_and_wait();
      sum += box[i % 2][(lane + warp) % 32];
      (void)empty[i % 2].arrive();
    }
    out[threadIdx.x - 32] = sum;
  }
}
// Lanes of one warp wait for each other.
__global__ void withinWarp(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> half;
  __shared__ int box;
  if (threadIdx.x == 0) init(&half, 32);
  __syncwarp();
  if (threadIdx.x < 16) {
    half.arrive_and_wait();
    out[threadIdx.x] = box + threadIdx.x;
  } else {
    if (threadIdx.x == 20) box = 7;
    (void)half.arrive();
    out[threadIdx.x] = -1;
  }
}
// Half of the threads drop out. The rest run two more phases.
__global__ void dropOut(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> all;
  __shared__ int count;
  if (threadIdx.x == 0) init(&all, blockDim.x), count = 0;
  __syncthreads();
  if (threadIdx.x % 2 == 1) {
    all.arrive_and_drop();
    return;
  }
  all.arrive_and_wait();
  atomicAdd(&count, 1);
  all.arrive_and_wait();
  out[threadIdx.x / 2] = count;
}// One thread starts all copies. The barrier counts their bytes.
__global__ void bulk(const int* in, int* out) {
  __shared__ __align__(128) int box[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> come;
  if (threadIdx.x == 0) {
    init(&come, blockDim.x);
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(box, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof box), come);
    token = cuda::device::barrier_arrive_tx(come, 1, sizeof box);
  } else {
    token = come.arrive();
  }
  come.wait(cuda::std::move(token));
  box[threadIdx.x] += 1;
  box[threadIdx.x + 128] *= 2;
  cuda::device::experimental::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out + blockIdx.x * 256, box, sizeof box);
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}
// Each block of a cluster writes to its neighbour, which waits for the bytes.
__global__ void __cluster_dims__(2, 1, 1) neighbours(int* out) {
  __shared__ __align__(8) int box[32];
  __shared__ uint64_t come;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    cuda::ptx::mbarrier_init(&come, 1);
    cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &come, sizeof box);
  }
  cluster.sync();
  const unsigned other = cluster.block_rank() ^ 1;
  cuda::ptx::st_async(cluster.map_shared_rank(&box[threadIdx.x], other), static_cast<int>(blockIdx.x * 100 + threadIdx.x), cluster.map_shared_rank(&come, other));
  while (!cuda::ptx::mbarrier_try_wait_parity(&come, 0)) {
  }
  out[blockIdx.x * 32 + threadIdx.x] = box[31 - threadIdx.x];
  cluster.sync();
}
}

// Locks, flags, and barriers of all kinds.
#include "common.cuh"

extern "C" {
// Each lane takes the lock by itself.
__global__ void spinLock(int* lock, volatile int* count) {
  bool isDone = false;
  while (!isDone) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *count = *count + 1;
      __threadfence();
      atomicExch(lock, 0);
      isDone = true;
    }
  }
}
// In the order of tickets, a block at a time.
__global__ void ticketLock(unsigned* lock, volatile int* list) {
  if (threadIdx.x != 0) return;
  const unsigned ticket = atomicAdd(&lock[0], 1u);
  while (atomicAdd(&lock[1], 0u) != ticket) __nanosleep(20);
  __threadfence();
  const int at = list[0];
  list[1 + at] = int(ticket);
  list[0] = at + 1;
  __threadfence();
  atomicExch(&lock[1], ticket + 1);
}
__global__ void flagChain(volatile int* flags) {
  const int i = INDEX;
  if (i > 0) {
    while (flags[i - 1] == 0) {
    }
  }
  __threadfence();
  flags[i] = i > 0 ? flags[i - 1] + i : 1;
}
// A stack without a lock; index and a count of changes in one word.
__global__ void stack(unsigned long long* head, int* next, int* popped, int n) {
  const int i = INDEX;
  if (i >= n) return;
  unsigned long long old = atomicAdd(head, 0ull), made;
  do {
    atomicExch(&next[i], int(unsigned(old)));
    __threadfence();
    made = ((old >> 32) + 1) << 32 | unsigned(i + 1);
    const unsigned long long seen = atomicCAS(head, old, made);
    if (seen == old) break;
    old = seen;
  } while (true);
  old = atomicAdd(head, 0ull);
  while (true) {
    const unsigned top = unsigned(old);
    const unsigned long long rest = ((old >> 32) + 1) << 32 | unsigned(atomicAdd(&next[top - 1], 0));
    const unsigned long long seen = atomicCAS(head, old, rest);
    if (seen == old) {
      atomicAdd(&popped[top - 1], 1);
      break;
    }
    old = seen;
  }
}
// The first block makes, the others take.
__global__ void producer(volatile int* ring, volatile int* ready, int* out, int rounds) {
  if (threadIdx.x != 0) return;
  for (int round = 0; round < rounds; ++round) {
    if (blockIdx.x == 0) {
      for (int other = 1; other < gridDim.x; ++other) {
        while (ready[other] != 0) {
        }
        ring[other] = round * 100 + other;
        __threadfence();
        ready[other] = 1;
      }
    } else {
      while (ready[blockIdx.x] == 0) {
      }
      __threadfence();
      out[blockIdx.x * rounds + round] = ring[blockIdx.x];
      __threadfence();
      ready[blockIdx.x] = 0;
    }
  }
}
__global__ void acquireRelease(int* data, int* flag, int* out) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 17;
    data[1] = 25;
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    int is = 0;
    while (is == 0) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(is) : "l"(flag) : "memory");
    out[blockIdx.x] = data[0] * data[1];
  }
}
__global__ void countingBarriers(const int* in, int* out) {
  const int i = INDEX;
  int* o = out + 3 * i;
  o[0] = __syncthreads_count(in[i] & 1);
  o[1] = __syncthreads_and(in[i] > -1000000);
  o[2] = __syncthreads_or(in[i] == 12345);
}
// Two halves of a block with a barrier each.
__global__ void namedBarriers(const int* in, int* out) {
  __shared__ int v[128];
  const int t = threadIdx.x, half = t / 64, base = half * 64;
  v[t] = in[INDEX];
  for (int round = 0; round <= half * 3; ++round) {
    asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
    const int other = v[base + (t + 1) % 64];
    asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
    v[t] += other;
  }
  __syncthreads();
  out[INDEX] = v[127 - t];
}
// Warps that make arrive, warps that take wait.
__global__ void arriveAndWait(const int* in, int* out) {
  __shared__ int v[64];
  const int t = threadIdx.x;
  for (int round = 0; round < 4; ++round) {
    if (t < 64) {
      v[t] = in[blockIdx.x * 64 + t] + round;
      asm volatile("bar.arrive 1, 128;" ::: "memory");
      asm volatile("bar.sync 2, 128;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      out[(blockIdx.x * 4 + round) * 64 + t - 64] = v[127 - t] * 2;
      asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
  }
}
// A lock in shared memory, for the threads of a block.
__global__ void sharedLock(int* out) {
  __shared__ int lock, count;
  if (threadIdx.x == 0) lock = count = 0;
  __syncthreads();
  for (bool isDone = false; !isDone;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence_block();
      count += 1 + int(threadIdx.x);
      __threadfence_block();
      atomicExch(&lock, 0);
      isDone = true;
    }
  }
  __syncthreads();
  out[INDEX] = count;
}
}

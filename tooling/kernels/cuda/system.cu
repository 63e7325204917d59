// printf, assert, malloc, and what kernels can ask about themselves.
#include <cassert>
#include <cstdio>

#include "common.cuh"

extern "C" {
__global__ void prints(int a, float b) {
  if (threadIdx.x == 0) printf("block %d of %u: %s %c %5.2f %08x %lld %%\n", int(blockIdx.x), gridDim.x, "text", 'q', double(b), unsigned(a), (long long)a * 1000000007);
}
__global__ void asserts(const int* in, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  assert(in[i] < 1000);
  out[i] = in[i] + 1;
}
__global__ void fromHeap(const int* in, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const int count = (in[i] & 15) + 1;
  int* v = static_cast<int*>(malloc(count * sizeof(int)));
  if (v == nullptr) return;
  for (int k = 0; k < count; ++k) v[k] = in[i] + k * k;
  int sum = 0;
  for (int k = 0; k < count; ++k) sum += v[k];
  free(v);
  out[i] = sum;
}
struct Item {
  int value;
  Item* next;
};
// A list that lives from one kernel to the next.
__device__ Item* list;
__global__ void makeList(int n) {
  const int i = INDEX;
  if (i >= n) return;
  Item* made = new Item;
  made->value = i;
  Item* head = *const_cast<Item* volatile*>(&list);
  for (;;) {
    made->next = head;
    __threadfence();
    const auto seen = atomicCAS(reinterpret_cast<unsigned long long*>(&list), reinterpret_cast<unsigned long long>(head), reinterpret_cast<unsigned long long>(made));
    if (seen == reinterpret_cast<unsigned long long>(head)) return;
    head = reinterpret_cast<Item*>(seen);
  }
}
__global__ void takeList(int* out) {
  while (list != nullptr) {
    Item* item = list;
    ++out[item->value];
    list = item->next;
    delete item;
  }
}
__global__ void places(int* out) {
  const int block = int((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  const int thread = int((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  const int i = block * int(blockDim.x * blockDim.y * blockDim.z) + thread;
  unsigned lane, warp, shared;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(shared));
  out[5 * i] = int(threadIdx.x | threadIdx.y << 8 | threadIdx.z << 16);
  out[5 * i + 1] = int(blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16);
  out[5 * i + 2] = int(blockDim.x * 10000 + blockDim.y * 100 + blockDim.z);
  out[5 * i + 3] = int(gridDim.x * 10000 + gridDim.y * 100 + gridDim.z);
  out[5 * i + 4] = int(lane + shared * 100) + (warp < 64 ? 0 : -1);
}
__global__ void clocks(int* out) {
  const long long start = clock64();
  unsigned long long before, after;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
  __nanosleep(1000);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
  out[INDEX] = (clock64() >= start) + 2 * (after >= before);
}
}

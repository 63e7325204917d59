// State spaces, vectors, structures as parameters, generic addresses.
#include "common.cuh"

extern "C" {
__global__ void copyVectors(const float4* in, float4* out, int n) {
  const int i = INDEX;
  if (i < n) {
    const float4 v = in[i];
    out[i] = make_float4(v.w, v.z, v.y, v.x);
  }
}
__global__ void copyPairs(const longlong2* in, short4* out, int n) {
  const int i = INDEX;
  if (i < n) {
    const longlong2 v = in[i];
    out[i] = make_short4(short(v.x), short(v.x >> 16), short(v.y >> 48), short(v.y));
  }
}
__constant__ int table[256];
__constant__ float scale = 1.5f;
__global__ void fromConstants(const unsigned char* in, float* out, int n) {
  const int i = INDEX;
  if (i < n) out[i] = float(table[in[i]]) * scale;
}
__device__ unsigned counters[8];
__device__ int seeds[4] = {3, 5, 7, 11};
__global__ void moduleVariables(const unsigned* in, int n) {
  const int i = INDEX;
  if (i < n) atomicAdd(&counters[in[i] & 7], unsigned(seeds[in[i] >> 8 & 3]));
}
__managed__ int total = 100;
__global__ void managedVariable(const int* in, int n) {
  const int i = INDEX;
  if (i < n) atomicAdd(&total, in[i] & 15);
}
// Indices that are known only at run time keep the array in local memory.
__global__ void localArrays(const unsigned* in, unsigned* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  unsigned v[20];
  for (int k = 0; k < 20; ++k) v[k] = unsigned(k) * in[i];
  unsigned at = in[i] % 20;
  for (int k = 0; k < 10; ++k) {
    v[at] += v[(at + 7) % 20] + 1;
    at = v[at] % 20;
  }
  out[i] = v[at] ^ v[19 - at];
}
__global__ void reverseBlocks(const int* in, int* out) {
  extern __shared__ int dynamic[];
  const int i = INDEX;
  dynamic[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = dynamic[blockDim.x - 1 - threadIdx.x];
}
// Arrays of several types in one dynamic part, besides a static one.
__global__ void sharedParts(const int* in, double* out) {
  extern __shared__ int dynamic[];
  __shared__ unsigned char bytes[256];
  double* numbers = reinterpret_cast<double*>(dynamic);
  int* integers = reinterpret_cast<int*>(numbers + blockDim.x);
  const int t = threadIdx.x, i = INDEX;
  numbers[t] = in[i] * 0.5;
  integers[t] = in[i] * 3;
  bytes[t] = static_cast<unsigned char>(in[i]);
  __syncthreads();
  const int other = (t * 7 + 3) % blockDim.x;
  out[i] = numbers[other] + integers[(other + 1) % blockDim.x] + bytes[(other + 2) % blockDim.x];
}
struct Particle {
  float position[3];
  char kind;
  double mass;
};
__global__ void structures(const Particle* in, Particle* out, float step, int n) {
  const int i = INDEX;
  if (i >= n) return;
  Particle p = in[i];
  for (int k = 0; k < 3; ++k) p.position[k] = p.position[k] + step * float(k + 1);
  p.kind = static_cast<char>(p.kind + 1);
  p.mass *= 2;
  out[i] = p;
}
struct Settings {
  int offset;
  double factors[5];
  struct {
    short low, high;
  } limits;
  unsigned char flags[3];
};
__global__ void structParameter(Settings settings, const int* in, double* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const int v = in[i] + settings.offset;
  double r = settings.factors[unsigned(v) % 5] * (settings.flags[unsigned(v) % 3] + 1);
  if (v < settings.limits.low) r = -r;
  if (v > settings.limits.high) r += 1;
  out[i] = r;
}
struct Node {
  int value;
  const Node* next;
};
__global__ void linkNodes(Node* nodes, const int* order, int n) {
  const int i = INDEX;
  if (i >= n) return;
  nodes[order[i]].value = i * 3;
  nodes[order[i]].next = i + 1 < n ? &nodes[order[i + 1]] : nullptr;
}
__global__ void followNodes(const Node* nodes, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  int sum = 0, steps = 0;
  for (const Node* at = &nodes[i]; at != nullptr && steps < 20; at = at->next, ++steps) sum += at->value;
  out[i] = sum;
}
// The same code reads shared, local and global memory by generic addresses.
__device__ __noinline__ int sumOf(const int* v, int count) {
  int sum = 0;
  for (int k = 0; k < count; ++k) sum += v[k] * (k + 1);
  return sum;
}
__global__ void genericAddresses(const int* in, int* out, int n) {
  __shared__ int shared[64];
  int local[8];
  const int i = INDEX, t = threadIdx.x;
  shared[t] = i < n ? in[i] : 0;
  for (int k = 0; k < 8; ++k) local[k] = (i < n ? in[i] : 0) + k * k;
  __syncthreads();
  if (i >= n) return;
  const int* from = i % 3 == 0 ? shared + (t & 48) : i % 3 == 1 ? local : in + i / 8;
  out[i] = sumOf(from, 8) + __isShared(from) * 1000 + __isGlobal(from) * 2000 + __isLocal(from) * 3000;
}
__global__ void moveBytes(const unsigned char* in, unsigned char* out, int shift, int n) {
  const int i = INDEX;
  if (i < n) out[(i + shift) % n] = static_cast<unsigned char>(in[i] ^ shift);
}
__global__ void cacheHints(const int* __restrict__ in, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  int v = __ldg(in + i) + __ldcg(in + (i + 1) % n) + __ldcs(in + (i + 2) % n);
  v += *const_cast<const volatile int*>(in + (i + 3) % n);
  __stwt(out + i, v);
}
__global__ void gather3(const float* in, const int* at, float* out, int width, int height, int depth) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= width || y >= height || z >= depth) return;
  const int i = (z * height + y) * width + x;
  out[i] = in[at[i]] + float(x) * 0.25f + float(y) * 4.0f + float(z) * 64.0f;
}
__global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
}

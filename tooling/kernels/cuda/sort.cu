// Sorts and histograms.
#include "common.cuh"

extern "C" {
__global__ void bitonic(int* data, int n) {
  __shared__ int v[512];
  const int t = threadIdx.x;
  for (int k = t; k < 512; k += 256) v[k] = k < n ? data[k] : 0x7fffffff;
  __syncthreads();
  for (int size = 2; size <= 512; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      const int low = 2 * t - (t & (stride - 1)), high = low + stride;
      const bool isUp = (low & size) == 0;
      const int x = v[low], y = v[high];
      if ((x > y) == isUp) {
        v[low] = y;
        v[high] = x;
      }
      __syncthreads();
    }
  }
  for (int k = t; k < n; k += 256) data[k] = v[k];
}
__global__ void oddEven(float* data, int n) {
  const int t = threadIdx.x;
  for (int round = 0; round < n; ++round) {
    const int at = 2 * t + (round & 1);
    if (at + 1 < n && data[at] > data[at + 1]) {
      const float kept = data[at];
      data[at] = data[at + 1];
      data[at + 1] = kept;
    }
    __syncthreads();
  }
}
// One block, four bits a pass, stable.
__global__ void radix(unsigned* keys, unsigned* other, int n) {
  __shared__ unsigned counts[16][128];
  unsigned *from = keys, *to = other;
  const int t = threadIdx.x, each = (n + 127) / 128, first = min(t * each, n), last = min(first + each, n);
  for (int shift = 0; shift < 32; shift += 4) {
    for (int digit = 0; digit < 16; ++digit) counts[digit][t] = 0;
    for (int i = first; i < last; ++i) ++counts[from[i] >> shift & 15][t];
    __syncthreads();
    if (t == 0) {
      unsigned sum = 0;
      for (int digit = 0; digit < 16; ++digit) {
        for (int k = 0; k < 128; ++k) {
          const unsigned own = counts[digit][k];
          counts[digit][k] = sum;
          sum += own;
        }
      }
    }
    __syncthreads();
    for (int i = first; i < last; ++i) to[counts[from[i] >> shift & 15][t]++] = from[i];
    __syncthreads();
    unsigned* kept = from;
    from = to;
    to = kept;
  }
}
// Two sorted lists: each element finds its place among those of the other.
__global__ void merge(const int* x, const int* y, int* out, int nx, int ny) {
  const int i = INDEX;
  if (i >= nx + ny) return;
  const bool isFirst = i < nx;
  const int v = isFirst ? x[i] : y[i - nx];
  const int* list = isFirst ? y : x;
  int low = 0, high = isFirst ? ny : nx;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (isFirst ? list[middle] < v : list[middle] <= v) low = middle + 1;
    else high = middle;
  }
  out[low + (isFirst ? i : i - nx)] = v;
}
__global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) bins[k] = 0;
  __syncthreads();
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int k = threadIdx.x; k < 256; k += blockDim.x) {
    if (bins[k] != 0) atomicAdd(&out[k], bins[k]);
  }
}
__global__ void weightedHistogram(const float* in, const int* weights, unsigned long long* out, float low, float width, int bins, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const int bin = int(floorf((in[i] - low) / width));
  if (bin >= 0 && bin < bins) atomicAdd(&out[bin], (unsigned long long)(weights[i]));
}
__global__ void rankSort(const int* in, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  int rank = 0;
  for (int k = 0; k < n; ++k) rank += in[k] < in[i] || (in[k] == in[i] && k < i);
  out[rank] = in[i];
}
}

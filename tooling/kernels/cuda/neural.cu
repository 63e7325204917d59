// Layers of neural networks.
#include <math_constants.h>

#include "common.cuh"

// The sum or the maximum over a block of 128 threads; all get it.
template <bool isSum>
__device__ float over128(float v) {
  __shared__ float part[4];
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(~0u, v, d);
    v = isSum ? v + other : fmaxf(v, other);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return isSum ? (part[0] + part[1]) + (part[2] + part[3]) : fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
}

extern "C" {
__global__ void softmax(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float most = -CUDART_INF_F, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 128) most = fmaxf(most, row[i]);
  most = over128<false>(most);
  for (int i = threadIdx.x; i < columns; i += 128) sum += expf(row[i] - most);
  sum = over128<true>(sum);
  for (int i = threadIdx.x; i < columns; i += 128) out[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}
__global__ void layerNorm(const float* in, const float* gain, const float* bias, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float sum = 0, square = 0;
  for (int i = threadIdx.x; i < columns; i += 128) sum += row[i];
  const float mean = over128<true>(sum) / float(columns);
  for (int i = threadIdx.x; i < columns; i += 128) square += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(over128<true>(square) / float(columns) + 1e-5f);
  for (int i = threadIdx.x; i < columns; i += 128) out[blockIdx.x * columns + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}
__global__ void rmsNorm(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float square = 0;
  for (int i = threadIdx.x; i < columns; i += 128) square += row[i] * row[i];
  const float scale = rsqrtf(over128<true>(square) / float(columns) + 1e-6f);
  for (int i = threadIdx.x; i < columns; i += 128) out[blockIdx.x * columns + i] = row[i] * scale;
}
__global__ void gelu(const float* in, float* out, int n) {
  const int i = INDEX;
  if (i < n) out[i] = 0.5f * in[i] * (1.0f + erff(in[i] * 0.70710678f));
}
__global__ void activations(const float* in, float* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const float v = in[i];
  out[3 * i] = fmaxf(v, 0.0f);
  out[3 * i + 1] = 1.0f / (1.0f + expf(-v));
  out[3 * i + 2] = v / (1.0f + expf(-v));
}
// One query a block; scores of the keys in dynamic shared memory, masked to the past.
__global__ void attention(const float* q, const float* k, const float* v, float* out, int length, int width) {
  extern __shared__ float scores[];
  const int query = blockIdx.x, count = query + 1;
  float most = -CUDART_INF_F, sum = 0;
  for (int key = threadIdx.x; key < count; key += 128) {
    float dot = 0;
    for (int d = 0; d < width; ++d) dot = fmaf(q[query * width + d], k[key * width + d], dot);
    scores[key] = dot / sqrtf(float(width));
    most = fmaxf(most, scores[key]);
  }
  most = over128<false>(most);
  for (int key = threadIdx.x; key < count; key += 128) {
    scores[key] = expf(scores[key] - most);
    sum += scores[key];
  }
  sum = over128<true>(sum);
  for (int d = threadIdx.x; d < width; d += 128) {
    float value = 0;
    for (int key = 0; key < count; ++key) value = fmaf(scores[key], v[key * width + d], value);
    out[query * width + d] = value / sum;
  }
}
// The same, a thread a query, with sums that are corrected as the maximum grows.
__global__ void attentionOnline(const float* q, const float* k, const float* v, float* out, int length) {
  const int query = INDEX;
  if (query >= length) return;
  float most = -CUDART_INF_F, sum = 0, value[8] = {};
  for (int key = 0; key <= query; ++key) {
    float dot = 0;
    for (int d = 0; d < 8; ++d) dot = fmaf(q[query * 8 + d], k[key * 8 + d], dot);
    const float score = dot * 0.35355339f, next = fmaxf(most, score), correction = expf(most - next), weight = expf(score - next);
    sum = fmaf(sum, correction, weight);
    for (int d = 0; d < 8; ++d) value[d] = fmaf(value[d], correction, weight * v[key * 8 + d]);
    most = next;
  }
  for (int d = 0; d < 8; ++d) out[query * 8 + d] = value[d] / sum;
}
__global__ void crossEntropy(const float* logits, const int* labels, float* losses, int classes) {
  const float* row = logits + blockIdx.x * classes;
  float most = -CUDART_INF_F, sum = 0;
  for (int i = threadIdx.x; i < classes; i += 128) most = fmaxf(most, row[i]);
  most = over128<false>(most);
  for (int i = threadIdx.x; i < classes; i += 128) sum += expf(row[i] - most);
  sum = over128<true>(sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + most - row[labels[blockIdx.x]];
}
__global__ void adam(float* weights, const float* gradients, float* first, float* second, float rate, float b1, float b2, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const float g = gradients[i];
  first[i] = b1 * first[i] + (1.0f - b1) * g;
  second[i] = b2 * second[i] + (1.0f - b2) * g * g;
  weights[i] = weights[i] - rate * first[i] / (sqrtf(second[i]) + 1e-8f);
}
__global__ void convolution(const float* in, const float* weights, float* out, int channels, int size, int filters) {
  const int x = threadIdx.x, y = blockIdx.x, f = blockIdx.y, reach = size - 2;
  if (x >= reach) return;
  float sum = 0;
  for (int c = 0; c < channels; ++c) {
    for (int k = 0; k < 9; ++k) sum = fmaf(in[(c * size + y + k / 3) * size + x + k % 3], weights[(f * channels + c) * 9 + k], sum);
  }
  out[(f * reach + y) * reach + x] = sum;
}
__global__ void maxPool(const float* in, float* out, int* where, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (2 * x + 1 >= width || 2 * y + 1 >= height) return;
  int best = 2 * y * width + 2 * x;
  for (int k = 1; k < 4; ++k) {
    const int at = (2 * y + k / 2) * width + 2 * x + k % 2;
    if (in[at] > in[best]) best = at;
  }
  out[y * (width / 2) + x] = in[best];
  where[y * (width / 2) + x] = best;
}
// Random numbers by counters, of 10 rounds.
__global__ void philox(unsigned* out, unsigned key0, unsigned key1, int n) {
  const int i = INDEX;
  if (i >= n) return;
  unsigned c[4] = {unsigned(i), 0, 0, 0}, k0 = key0, k1 = key1;
  for (int round = 0; round < 10; ++round) {
    const unsigned h0 = __umulhi(0xd2511f53u, c[0]), l0 = 0xd2511f53u * c[0], h1 = __umulhi(0xcd9e8d57u, c[2]), l1 = 0xcd9e8d57u * c[2];
    c[0] = h1 ^ c[1] ^ k0;
    c[1] = l1;
    c[2] = h0 ^ c[3] ^ k1;
    c[3] = l0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  reinterpret_cast<uint4*>(out)[i] = make_uint4(c[0], c[1], c[2], c[3]);
}
}

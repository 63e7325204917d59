// Whole small programs.
#include "common.cuh"

extern "C" {
__global__ void nBody(const float4* bodies, float4* forces, int n) {
  __shared__ float4 tile[64];
  const int i = INDEX;
  const float4 own = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float x = 0, y = 0, z = 0;
  for (int start = 0; start < n; start += 64) {
    tile[threadIdx.x] = start + threadIdx.x < n ? bodies[start + threadIdx.x] : make_float4(0, 0, 0, 0);
    __syncthreads();
    for (int k = 0; k < 64; ++k) {
      const float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
      const float square = dx * dx + dy * dy + dz * dz + 0.01f, factor = tile[k].w / (square * sqrtf(square));
      x = x + dx * factor;
      y = y + dy * factor;
      z = z + dz * factor;
    }
    __syncthreads();
  }
  if (i < n) forces[i] = make_float4(x, y, z, own.w);
}
__global__ void blackScholes(const double* prices, const double* strikes, const double* years, double* calls, double rate, double volatility, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const double root = volatility * sqrt(years[i]);
  const double d1 = (log(prices[i] / strikes[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / root, d2 = d1 - root;
  calls[i] = prices[i] * normcdf(d1) - strikes[i] * exp(-rate * years[i]) * normcdf(d2);
}
// Keys into an open table, counts beside them.
__global__ void hashTable(const unsigned* keys, unsigned* table, unsigned* counts, unsigned mask, int n) {
  const int i = INDEX;
  if (i >= n) return;
  unsigned at = keys[i] * 2654435761u & mask;
  for (;;) {
    const unsigned seen = atomicCAS(&table[at], 0xffffffffu, keys[i]);
    if (seen == 0xffffffffu || seen == keys[i]) {
      atomicAdd(&counts[at], 1u);
      return;
    }
    at = (at + 1) & mask;
  }
}
__global__ void breadthFirst(const int* starts, const int* edges, int* levels, int level, int* changed, int n) {
  const int i = INDEX;
  if (i >= n || levels[i] != level) return;
  for (int k = starts[i]; k < starts[i + 1]; ++k) {
    if (atomicCAS(&levels[edges[k]], -1, level + 1) == -1) *changed = 1;
  }
}
__global__ void kMeans(const float2* points, const float2* centers, int* nearest, float* sums, int clusters, int n) {
  const int i = INDEX;
  if (i >= n) return;
  int best = 0;
  float least = 3e38f;
  for (int k = 0; k < clusters; ++k) {
    const float dx = points[i].x - centers[k].x, dy = points[i].y - centers[k].y, square = dx * dx + dy * dy;
    if (square < least) {
      least = square;
      best = k;
    }
  }
  nearest[i] = best;
  atomicAdd(&sums[best], 1.0f);
}
__global__ void sha256(const unsigned* in, unsigned* out, int n) {
  const unsigned k[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
      0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
      0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
      0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
      0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  const int i = INDEX;
  if (i >= n) return;
  unsigned w[64], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, v[8];
  auto turned = [](unsigned x, int by) { return __funnelshift_r(x, x, by); };
  for (int t = 0; t < 4; ++t) w[t] = __byte_perm(in[4 * i + t], 0, 0x0123);
  w[4] = 0x80000000;
  for (int t = 5; t < 15; ++t) w[t] = 0;
  w[15] = 128;
  for (int t = 16; t < 64; ++t) {
    w[t] = (turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ w[t - 2] >> 10) + w[t - 7] + (turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ w[t - 15] >> 3) + w[t - 16];
  }
  for (int t = 0; t < 8; ++t) v[t] = s[t];
  for (int t = 0; t < 64; ++t) {
    const unsigned one = v[7] + (turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[t] + w[t];
    const unsigned two = (turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    for (int u = 7; u > 0; --u) v[u] = v[u - 1];
    v[4] += one;
    v[0] = one + two;
  }
  for (int t = 0; t < 8; ++t) out[8 * i + t] = __byte_perm(s[t] + v[t], 0, 0x0123);
}
// Points in a circle, by a generator of 32 bits.
__global__ void monteCarlo(unsigned* states, unsigned long long* inside, int each, int n) {
  const int i = INDEX;
  if (i >= n) return;
  unsigned x = states[i], count = 0;
  auto next = [&] {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x >> 17;
  };
  for (int k = 0; k < each; ++k) {
    const unsigned px = next(), py = next();
    count += px * px + py * py < 1u << 30;
  }
  states[i] = x;
  atomicAdd(inside, (unsigned long long)count);
}
__global__ void longestCommon(const unsigned char* x, const unsigned char* y, int* out, int length) {
  extern __shared__ int rows[];
  const int t = threadIdx.x;
  // Diagonals of the table, three at a time.
  int *before = rows, *last = rows + length + 1, *now = rows + 2 * (length + 1);
  for (int k = t; k <= length; k += blockDim.x) before[k] = last[k] = now[k] = 0;
  __syncthreads();
  for (int diagonal = 2; diagonal <= 2 * length; ++diagonal) {
    for (int r = max(1, diagonal - length) + t; r <= min(length, diagonal - 1); r += blockDim.x) {
      const int c = diagonal - r;
      now[r] = x[blockIdx.x * length + r - 1] == y[blockIdx.x * length + c - 1] ? before[r - 1] + 1 : max(last[r - 1], last[r]);
    }
    __syncthreads();
    int* kept = before;
    before = last;
    last = now;
    now = kept;
    for (int k = t; k <= length; k += blockDim.x) now[k] = 0;
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = last[length];
}
}

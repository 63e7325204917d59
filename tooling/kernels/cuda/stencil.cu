// Stencils and filters.
#include "common.cuh"

extern "C" {
__global__ void line(const float* in, float* out, int n) {
  __shared__ float tile[128 + 6];
  const int i = INDEX, t = threadIdx.x;
  auto at = [&](int k) { return k >= 0 && k < n ? in[k] : 0.0f; };
  tile[t + 3] = at(i);
  if (t < 3) {
    tile[t] = at(i - 3);
    tile[t + 131] = at(i + 128);
  }
  __syncthreads();
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 7; ++k) sum = sum + tile[t + k] * (0.125f * float(k + 1));
  out[i] = sum;
}
__global__ void fivePoints(const float* in, float* out, int width, int height) {
  __shared__ float tile[10][34];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  for (int k = threadIdx.y * 32 + threadIdx.x; k < 340; k += 256) {
    const int sx = min(max(int(blockIdx.x * 32 + k % 34) - 1, 0), width - 1), sy = min(max(int(blockIdx.y * 8 + k / 34) - 1, 0), height - 1);
    tile[k / 34][k % 34] = in[sy * width + sx];
  }
  __syncthreads();
  if (x >= width || y >= height) return;
  const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  out[y * width + x] = 0.5f * tile[ty][tx] + 0.125f * (((tile[ty - 1][tx] + tile[ty + 1][tx]) + tile[ty][tx - 1]) + tile[ty][tx + 1]);
}
__global__ void sevenPoints(const double* in, double* out, int nx, int ny, int nz) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y >= ny) return;
  for (int z = 0; z < nz; ++z) {
    const int i = (z * ny + y) * nx + x;
    if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) out[i] = in[i];
    else out[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny] - 6 * in[i];
  }
}
__constant__ float filter[25];
__global__ void convolve(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) {
      const int sx = x + dx, sy = y + dy;
      if (sx >= 0 && sy >= 0 && sx < width && sy < height) sum = fmaf(in[sy * width + sx], filter[(dy + 2) * 5 + dx + 2], sum);
    }
  }
  out[y * width + x] = sum;
}
__global__ void life(const unsigned char* in, unsigned char* out, int width, int height) {
  const int i = INDEX;
  if (i >= width * height) return;
  const int x = i % width, y = i / width;
  int alive = 0;
  for (int k = 0; k < 9; ++k) {
    if (k != 4) alive += in[(y + k / 3 - 1 + height) % height * width + (x + k % 3 - 1 + width) % width];
  }
  out[i] = alive == 3 || (alive == 2 && in[i] != 0);
}
// Rounds within one block, from one half of the shared memory into the other.
__global__ void jacobi(const float* in, float* out, int rounds) {
  __shared__ float grid[2][18][18];
  const int x = threadIdx.x + 1, y = threadIdx.y + 1, t = threadIdx.y * 16 + threadIdx.x;
  for (int k = t; k < 324; k += 256) grid[0][k / 18][k % 18] = grid[1][k / 18][k % 18] = in[blockIdx.x * 324 + k];
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const float(&from)[18][18] = grid[round & 1];
    grid[1 - (round & 1)][y][x] = ((from[y - 1][x] + from[y + 1][x]) + (from[y][x - 1] + from[y][x + 1])) * 0.25f;
    __syncthreads();
  }
  for (int k = t; k < 324; k += 256) out[blockIdx.x * 324 + k] = grid[rounds & 1][k / 18][k % 18];
}
__global__ void median(const unsigned char* in, unsigned char* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  unsigned char v[9];
  for (int k = 0; k < 9; ++k) v[k] = in[min(max(y + k / 3 - 1, 0), height - 1) * width + min(max(x + k % 3 - 1, 0), width - 1)];
  for (int p = 0; p < 5; ++p) {
    for (int q = p + 1; q < 9; ++q) {
      if (v[q] < v[p]) {
        const unsigned char kept = v[p];
        v[p] = v[q];
        v[q] = kept;
      }
    }
  }
  out[y * width + x] = v[4];
}
// Sums of columns that slide down the rows.
__global__ void boxBlur(const int* in, int* out, int width, int height, int radius) {
  const int x = INDEX;
  if (x >= width) return;
  int sum = 0;
  for (int y = 0; y < min(radius, height); ++y) sum += in[y * width + x];
  for (int y = 0; y < height; ++y) {
    if (y + radius < height) sum += in[(y + radius) * width + x];
    if (y - radius - 1 >= 0) sum -= in[(y - radius - 1) * width + x];
    out[y * width + x] = sum;
  }
}
}

// Textures and surfaces: what NVIDIA's samples do with them, and each kind of access once.
#include "common.cuh"

extern "C" {
// A picture that is turned, with coordinates from 0 to 1.
__global__ void turned(cudaTextureObject_t picture, float* out, int width, int height, float cosine, float sine) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float u = x / (float)width - 0.5f, v = y / (float)height - 0.5f;
  out[y * width + x] = tex2D<float>(picture, u * cosine - v * sine + 0.5f, v * cosine + u * sine + 0.5f);
}
// Each layer of a picture, its sign turned round.
__global__ void layered(cudaTextureObject_t pictures, float* out, int width, int height, int layer) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  out[(layer * height + y) * width + x] = -tex2DLayered<float>(pictures, (x + 0.5f) / width, (y + 0.5f) / height, layer) + layer;
}
__global__ void lines(cudaTextureObject_t lines, float* out, int width, int layers) {
  const int i = INDEX;
  if (i < width * layers) out[i] = tex1DLayered<float>(lines, i % width + 0.75f, i / width);
}
__global__ void volume(cudaTextureObject_t volume, float* out, int n, float z) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = tex3D<float>(volume, (x + 0.25f) / n, (y + 0.5f) / n, z);
}
// Each face of a cube, seen from its middle.
__global__ void cube(cudaTextureObject_t cube, float* out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  const float u = (x + 0.5f) / n * 2 - 1, v = (y + 0.5f) / n * 2 - 1;
  for (int face = 0; face < 6; ++face) {
    float cx, cy, cz;
    if (face == 0) cx = 1, cy = -v, cz = -u;
    else if (face == 1) cx = -1, cy = -v, cz = u;
    else if (face == 2) cx = u, cy = 1, cz = v;
    else if (face == 3) cx = u, cy = -1, cz = -v;
    else if (face == 4) cx = u, cy = -v, cz = 1;
    else cx = -u, cy = -v, cz = -1;
    out[(face * n + y) * n + x] = texCubemap<float>(cube, cx, cy, cz);
  }
}
__global__ void cubes(cudaTextureObject_t cubes, float* out, int n) {
  const int i = INDEX;
  if (i < n) out[i] = texCubemapLayered<float>(cubes, 0.5f, 0.25f, -1.0f, i);
}
__global__ void fetched(cudaTextureObject_t list, float* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const float4 texel = tex1Dfetch<float4>(list, i - 2);  // beyond both ends are zeroes
  out[i] = (texel.x + texel.y) + (texel.z + texel.w);
}
__global__ void shifted(cudaTextureObject_t rows, unsigned* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = tex2D<unsigned>(rows, x + 3.5f, y - 1.5f);
}
__global__ void halves(cudaTextureObject_t colours, float4* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = tex2D<float4>(colours, x + 1.0f, y + 1.0f);
}
__global__ void gathered(cudaTextureObject_t colours, float4* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = tex2Dgather<float4>(colours, x + 1.0f, y + 1.0f, 1);
}
__global__ void levels(cudaTextureObject_t pictures, float* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  out[2 * i] = tex2DLod<float>(pictures, 0.3f, 0.7f, i * 0.25f);
  out[2 * i + 1] = tex2DGrad<float>(pictures, 0.3f, 0.7f, make_float2(1.0f / (16 >> i), 0), make_float2(0, 0));
}
__global__ void asked(cudaTextureObject_t texture, cudaSurfaceObject_t surface, int* out) {
  asm volatile("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(texture));
  asm volatile("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(texture));
  asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[2]) : "l"(surface));
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[3]) : "l"(surface));
}
// Written as a surface, read as one, and counted in one.
__global__ void drawn(cudaSurfaceObject_t to, const float* in, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width + 2 && y < height + 2) surf2Dwrite(in[min(y, height - 1) * width + min(x, width - 1)], to, x * 4, y, cudaBoundaryModeZero);
}
__global__ void taken(cudaSurfaceObject_t from, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  out[2 * (y * width + x)] = surf2Dread<float>(from, (x - 1) * 4, y + 1, cudaBoundaryModeZero);
  out[2 * (y * width + x) + 1] = surf2Dread<float>(from, (x - 1) * 4, y + 1, cudaBoundaryModeClamp);
}
__global__ void counted(cudaSurfaceObject_t counts, const int* in, int n) {
  const int i = INDEX;
  if (i >= n) return;
  asm volatile("sured.b.add.1d.u32.zero [%0, {%1}], %2;" ::"l"(counts), "r"(in[i] * 4), "r"(1));
}
__global__ void slices(cudaSurfaceObject_t volume, short2* out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  for (int z = 0; z < n; ++z) {
    short2 value = surf3Dread<short2>(volume, x * 4, y, z);
    out[(z * n + y) * n + x] = value;
    value.x = -value.x;
    surf3Dwrite(value, volume, x * 4, y, z);
  }
}
__global__ void sheets(cudaSurfaceObject_t layers, unsigned char* out, int n, int count) {
  const int i = INDEX;
  if (i >= n * n * count) return;
  const int x = i % n, y = i / n % n, z = i / n / n;
  out[i] = surf2DLayeredread<unsigned char>(layers, x, y, z);
  surf2DLayeredwrite<unsigned char>(255 - out[i], layers, x, y, z);
}
}

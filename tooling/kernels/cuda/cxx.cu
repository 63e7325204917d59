// Templates, lambdas, and other things of C++.
#include "common.cuh"

template <class T, class F>
__device__ void mapped(const T* in, T* out, int n, F f) {
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) out[i] = f(in[i]);
}
template <class T>
struct Complex {
  T re, im;
  __device__ Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  __device__ Complex operator-(Complex o) const { return {re - o.re, im - o.im}; }
  __device__ Complex operator*(Complex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
};
template <class... Parts>
__device__ int folded(Parts... parts) {
  return (parts + ...) * int(sizeof...(Parts));
}
template <class Derived>
struct Base {
  __device__ int run(int v) const { return static_cast<const Derived*>(this)->step(v) + 1; }
};
struct Doubler : Base<Doubler> {
  __device__ int step(int v) const { return v * 2; }
};
struct Negater : Base<Negater> {
  int bias;
  __device__ explicit Negater(int b) : bias(b) {}
  __device__ int step(int v) const { return bias - v; }
};
template <int N>
struct Powers {
  int at[N] = {};
  constexpr Powers() {
    for (int i = 0, v = 1; i < N; ++i, v = v * 3 % 1009) at[i] = v;
  }
};
__device__ constexpr Powers<32> powers;

template <int Size>
__global__ void reversed(const short* in, short* out) {
  __shared__ short v[Size];
  v[threadIdx.x] = in[INDEX];
  __syncthreads();
  out[INDEX] = v[Size - 1 - threadIdx.x];
}
template __global__ void reversed<32>(const short*, short*);
template __global__ void reversed<96>(const short*, short*);

extern "C" {
__global__ void lambdas(const int* in, int* out, int offset, int n) {
  int calls = 0;
  mapped(in, out, n, [=, &calls](int v) {
    ++calls;
    auto again = [&](auto self, int left, int x) -> int { return left == 0 ? x + offset : self(self, left - 1, x * 3 + 1); };
    return again(again, v & 3, v & 0xffff) + calls * 0;
  });
}
__global__ void folds(const int* in, int* out, int n) {
  const int i = INDEX;
  if (i < n) out[i] = folded(in[i] & 255, i, 3) + folded(in[i] & 15, i & 7) + folded(1);
}
__global__ void curious(const int* in, int* out, int n) {
  const int i = INDEX;
  if (i < n) out[i] = Doubler().run(in[i] & 0xffff) ^ Negater(i).run(in[i] & 0xffff);
}
__global__ void computedTable(const unsigned* in, int* out, int n) {
  const int i = INDEX;
  if (i < n) out[i] = powers.at[in[i] & 31] + powers.at[in[i] >> 5 & 31];
}
// A Fourier transform of 64 points a block, with given factors.
__global__ void fourier(const Complex<double>* in, const Complex<double>* factors, Complex<double>* out) {
  __shared__ Complex<double> v[64];
  const int t = threadIdx.x;
  for (int k = t; k < 64; k += 32) v[__brev(k) >> 26] = in[blockIdx.x * 64 + k];
  __syncthreads();
  for (int half = 1; half < 64; half *= 2) {
    const int at = t % half, low = t / half * half * 2 + at;
    const Complex<double> odd = v[low + half] * factors[at * (32 / half)], even = v[low];
    v[low] = even + odd;
    v[low + half] = even - odd;
    __syncthreads();
  }
  for (int k = t; k < 64; k += 32) out[blockIdx.x * 64 + k] = v[k];
}
}

// A kernel with each property that a module and its functions can be queried for.
struct Pair {
  double first;
  int second;
};

extern "C" {
__constant__ float scale[16];
__device__ int counter;
__managed__ long long total;

__global__ void __launch_bounds__(256) manyParameters(float a, const float* x, Pair pair, char last, float* y) {
  __shared__ float tile[256];
  extern __shared__ float dynamic[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = a * x[i] + scale[i & 15];
  dynamic[threadIdx.x] = static_cast<float>(pair.first);
  __syncthreads();
  y[i] = tile[255 - threadIdx.x] + dynamic[threadIdx.x] + static_cast<float>(pair.second + last);
}

__global__ void noParameters() {
  atomicAdd(&counter, 1);
  total += 1;
}
}

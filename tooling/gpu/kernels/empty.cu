// Kernels that do nothing: what is left of their launch is its cost.
extern "C" __global__ void empty0() {}
extern "C" __global__ void empty4(float a, const float* x, float* y, int n) {}

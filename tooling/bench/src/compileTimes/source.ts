/** A kernel of fifty lines, with loops, shared memory and barriers. */
export const source = `extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float s[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : SALT;
  __syncthreads();
${Array.from(
  { length: 22 },
  (_, index) => `  for (int k = ${index}; k < n; k += ${index + 3}) s[t] += x[(i + k) % n] * ${index + 1}.5f;
  if (t % ${index + 2} == 0) s[t] = sqrtf(fabsf(s[t])) + s[(t + ${index}) % 256];`,
).join('\n')}
  if (i < n) y[i] = s[t];
}`

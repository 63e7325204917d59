// Keeps a stream busy for `ticks` ticks of the multiprocessor's clock.
extern "C" __global__ void spin(long long ticks) {
  const long long start = clock64();
  while (clock64() - start < ticks) {
  }
}

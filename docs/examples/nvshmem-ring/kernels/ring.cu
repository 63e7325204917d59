// One kernel writes into the memory of its right neighbour. A second kernel waits for the data of the left neighbour.
#include <nvshmem.h>
#include <nvshmemx.h>

/** Each thread writes one element to the right neighbour. The thread that finishes last sends the signal. */
extern "C" __global__ void put_to_neighbour(int *target, unsigned long long *arrived, int count) {
  const int me = nvshmem_my_pe();
  const int right = (me + 1) % nvshmem_n_pes();
  for (int i = threadIdx.x; i < count; i += blockDim.x) nvshmem_int_p(target + i, me * 1000000 + i, right);
  nvshmem_quiet();
  __syncthreads();
  if (threadIdx.x == 0) nvshmemx_signal_op((uint64_t *)arrived, 1, NVSHMEM_SIGNAL_SET, right);
}

/** Waits for the left neighbour, then counts the elements with a wrong value. */
extern "C" __global__ void check_arrival(const int *target, unsigned long long *arrived, int count, int *wrong) {
  if (threadIdx.x == 0) nvshmem_signal_wait_until((uint64_t *)arrived, NVSHMEM_CMP_EQ, 1);
  __syncthreads();
  const int left = (nvshmem_my_pe() - 1 + nvshmem_n_pes()) % nvshmem_n_pes();
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    if (target[i] != left * 1000000 + i) atomicAdd(wrong, 1);
  }
}

import { fileURLToPath } from 'node:url'

/** The file names of the libraries, by what they stand in for. All lie in {@link libraryFolder}. */
export const libraries = {
  /** Stands in for `libcuda.so.1`. */
  cuda: 'libshoal-sim-cuda.so.1',
  /** Stands in for `libcudart.so.13`; finds the first one beside it. */
  cudart: 'libshoal-sim-cudart.so.13',
  /** Stands in for `libnccl.so.2`; finds the first one beside it. */
  nccl: 'libshoal-sim-nccl.so.2',
  /** Stands in for `libnvshmem_host.so.3`; finds the first one beside it. */
  nvshmem: 'libshoal-sim-nvshmem_host.so.3',
} as const

/**
 * The absolute path of the folder that holds the libraries built for this platform. The folder exists on platforms the
 * software device is built for: Linux, by `npm run build:native`.
 */
export function libraryFolder(): string {
  return fileURLToPath(new URL(`../prebuilds/${process.platform}-${process.arch}`, import.meta.url))
}

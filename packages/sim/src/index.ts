import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** File names of the software device's libraries. All are in {@link libraryFolder}. */
export const libraries = {
  /** Replaces `libcuda.so.1`. */
  cuda: 'libshoal-sim-cuda.so.1',
  /** Replaces `libcudart.so.13`. It finds the `cuda` library in the same folder. */
  cudart: 'libshoal-sim-cudart.so.13',
  /** Replaces `libnccl.so.2`. It finds the `cuda` library in the same folder. */
  nccl: 'libshoal-sim-nccl.so.2',
  /** Replaces `libnvshmem_host.so.3`. It finds the `cuda` library in the same folder. */
  nvshmem: 'libshoal-sim-nvshmem_host.so.3',
} as const

/**
 * Returns the absolute path of the folder with this platform's libraries. It belongs to the optional dependency
 * `@shoal/sim-<platform>`, or `make -C native` built it. If neither exists, returns a folder that does not exist.
 */
export function libraryFolder(): string {
  const platforms = ['linux', 'linuxmusl'].map((system) => `${system}-${process.arch}`)
  const built = platforms.map((platform) => fileURLToPath(new URL(`../prebuilds/${platform}`, import.meta.url)))
  const installed = platforms.flatMap((platform) => {
    try {
      return [dirname(createRequire(import.meta.url).resolve(`@shoal/sim-${platform}/package.json`))]
    } catch {
      return [] // for another platform, or not installed
    }
  })
  const isThere = (folder: string): boolean => existsSync(`${folder}/${libraries.cuda}`)
  return [...built, ...installed].find(isThere) ?? (built[0] as string)
}

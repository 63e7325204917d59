import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
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
 * The absolute path of the folder that holds the libraries for this platform: of the package `@shoal/sim-<platform>`,
 * an optional dependency, or of what `make -C native` built. Where there is neither, of a folder that does not exist.
 */
export function libraryFolder(): string {
  const platforms = ['linux', 'linuxmusl'].map((system) => `${system}-${process.arch}`)
  const built = platforms.map((platform) => fileURLToPath(new URL(`../prebuilds/${platform}`, import.meta.url)))
  const installed = platforms.flatMap((platform) => {
    try {
      return [dirname(createRequire(import.meta.url).resolve(`@shoal/sim-${platform}/package.json`))]
    } catch {
      return [] // for another platform, or left out
    }
  })
  const isThere = (folder: string): boolean => existsSync(`${folder}/${libraries.cuda}`)
  return [...built, ...installed].find(isThere) ?? (built[0] as string)
}

/** The entry points of the raw packages. */
export interface SysEntry {
  readonly library: 'driver' | 'runtime' | 'nccl' | 'nvshmem'
  readonly specifier: string
  readonly package: string
  /** The variable that names the library's file. */
  readonly environment: string
}

export const sysEntries: readonly SysEntry[] = [
  entry('driver', '@shoal/cuda-sys/driver', 'SHOAL_CUDA_LIBRARY'),
  entry('runtime', '@shoal/cuda-sys/runtime', 'SHOAL_CUDART_LIBRARY'),
  entry('nccl', '@shoal/nccl-sys', 'SHOAL_NCCL_LIBRARY'),
  entry('nvshmem', '@shoal/nvshmem-sys', 'SHOAL_NVSHMEM_LIBRARY'),
]

function entry(library: SysEntry['library'], specifier: string, environment: string): SysEntry {
  return { library, specifier, package: specifier.split('/').slice(0, 2).join('/'), environment }
}

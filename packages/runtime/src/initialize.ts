import { cudaRuntimeGetVersion } from '@shoal/cuda-sys/runtime'
import { scratch } from '@shoal/driver/shared'
import { CudaVersion } from '@shoal/types'
import { check, runtimeLibrary } from './calls/runtimeLibrary.js'

/**
 * Loads the driver and the runtime. The first use of this package does this by itself; call this function to get errors
 * early.
 *
 * @throws LibraryNotFoundError if one is missing; StatusError if the driver does not start.
 */
export function initialize(): void {
  runtimeLibrary.start()
}

/** Returns the version of the loaded libcudart (`cudaRuntimeGetVersion`). */
export function runtimeVersion(): CudaVersion {
  const out = scratch()
  check(cudaRuntimeGetVersion(out), 'cudaRuntimeGetVersion')
  return CudaVersion.from(out.i32[0] as number)
}

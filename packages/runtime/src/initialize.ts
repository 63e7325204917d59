import { cudaRuntimeGetVersion } from '@shoal/cuda-sys/runtime'
import { scratch } from '@shoal/driver/shared'
import { CudaVersion } from '@shoal/types'
import { check, runtimeLibrary } from './calls/runtimeLibrary.js'

/**
 * Loads the driver and the runtime. Every object of this package does so on its own; call it to fail early.
 * @throws LibraryNotFoundError when one is not there, StatusError when the driver does not start.
 */
export function initialize(): void {
  runtimeLibrary.start()
}

/** The version of the loaded libcudart (`cudaRuntimeGetVersion`). */
export function runtimeVersion(): CudaVersion {
  const out = scratch()
  check(cudaRuntimeGetVersion(out), 'cudaRuntimeGetVersion')
  return CudaVersion.from(out.i32[0] as number)
}

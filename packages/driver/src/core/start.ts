import { cuDriverGetVersion, cuInit, ensureContextFunctions } from '@shoal/cuda-sys/driver'
import { CudaVersion } from '@shoal/types'
import { check } from './errors.js'
import { scratch } from './native.js'

let isStarted = false

/**
 * Loads and initializes the driver, once.
 * @throws LibraryNotFoundError when there is no driver, StatusError when initialization fails (`cuInit`)
 */
export function startDriver(): void {
  if (isStarted) return
  ensureContextFunctions()
  check(cuInit(0), 'cuInit')
  isStarted = true
}

/** Returns the newest CUDA version that the installed driver supports (`cuDriverGetVersion`). */
export function driverVersion(): CudaVersion {
  const out = scratch()
  check(cuDriverGetVersion(out), 'cuDriverGetVersion')
  return CudaVersion.from(out.i32[0] as number)
}

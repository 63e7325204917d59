import { cuDriverGetVersion, cuInit, ensureContextFunctions } from '@shoal/cuda-sys/driver'
import { CudaVersion } from '@shoal/types'
import { closeContextsOfThread } from './context.js'
import { check } from './errors.js'
import { watchForEnd } from './lifetime.js'
import { scratch } from './native.js'

let isInitialized = false

/**
 * Loads the driver and initialises it. Every object of this package does so on its own; call it to fail early.
 * @throws LibraryNotFoundError when there is no driver, StatusError when it does not start (`cuInit`).
 */
export function initialize(): void {
  if (isInitialized) return
  ensureContextFunctions()
  check(cuInit(0), 'cuInit')
  watchForEnd(closeContextsOfThread)
  isInitialized = true
}

/** The newest CUDA version the installed driver supports (`cuDriverGetVersion`). */
export function driverVersion(): CudaVersion {
  const out = scratch()
  check(cuDriverGetVersion(out), 'cuDriverGetVersion')
  return CudaVersion.from(out.i32[0] as number)
}

import { type Context, closeContextsOfThread, scratch, startDriver, watchForEnd } from '@shoal/cuda-base'
import { cudaRuntimeGetVersion } from '@shoal/cuda-sys/runtime'
import { CudaVersion } from '@shoal/types'
import { check, runtimeErrors } from './errors.js'

let isStarted = false

/**
 * Loads the driver and the runtime. Every object of this package does so on its own; call it to fail early.
 * @throws LibraryNotFoundError when one is not there, StatusError when the driver does not start.
 */
export function initialize(): void {
  if (isStarted) return
  startDriver()
  runtimeVersion()
  watchForEnd(closeContextsOfThread)
  isStarted = true
}

/** The version of the loaded libcudart (`cudaRuntimeGetVersion`). */
export function runtimeVersion(): CudaVersion {
  const out = scratch()
  check(cudaRuntimeGetVersion(out), 'cudaRuntimeGetVersion')
  return CudaVersion.from(out.i32[0] as number)
}

/** Calls one function of the runtime, exactly one, with the device of the context as the current one. */
export function callOn(context: Context, api: string, call: () => number): void {
  context._call(api, call, runtimeErrors)
}

/** Calls one releasing function of the runtime; does nothing when the context is gone. */
export function releaseOn(context: Context, api: string, call: () => number): void {
  context._release(api, call, runtimeErrors)
}

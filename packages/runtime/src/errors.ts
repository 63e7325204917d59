import { cudaGetLastError, cudaPeekAtLastError } from '@shoal/cuda-sys/runtime'
import { Status, type StatusText } from '@shoal/driver/shared'
import { requireInteger, type StatusError } from '@shoal/types'
import { runtimeLibrary } from './calls/runtimeLibrary.js'

/**
 * The last error of a runtime function on this thread, which counts as read afterwards; undefined where there was none
 * (`cudaGetLastError`). What was thrown as a `StatusError` is in it too.
 */
export function lastError(): StatusError | undefined {
  const status: number = cudaGetLastError()
  return status === Status.success ? undefined : runtimeLibrary.error(status, 'cudaGetLastError')
}

/** The same without counting it as read (`cudaPeekAtLastError`). */
export function peekLastError(): StatusError | undefined {
  const status: number = cudaPeekAtLastError()
  return status === Status.success ? undefined : runtimeLibrary.error(status, 'cudaPeekAtLastError')
}

/**
 * What the runtime calls a status and says of it, without an error (`cudaGetErrorName`, `cudaGetErrorString`).
 * @throws TypeError, RangeError
 */
export function statusText(status: number): StatusText {
  return runtimeLibrary.describeStatus(requireInteger(status, 'statusText', 'status', 0, 0x7fff_ffff))
}

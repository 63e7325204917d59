import { cudaGetLastError, cudaPeekAtLastError } from '@shoal/cuda-sys/runtime'
import { Status, type StatusText } from '@shoal/driver/shared'
import { requireInteger, type StatusError } from '@shoal/types'
import { runtimeLibrary } from './calls/runtimeLibrary.js'

/**
 * Returns and clears the last error of a runtime function on this thread (`cudaGetLastError`).
 *
 * Returns undefined if there was no error. The last error can be one that was thrown as a `StatusError`.
 */
export function lastError(): StatusError | undefined {
  const status: number = cudaGetLastError()
  return status === Status.success ? undefined : runtimeLibrary.error(status, 'cudaGetLastError')
}

/** Returns the last error without clearing it (`cudaPeekAtLastError`). */
export function peekLastError(): StatusError | undefined {
  const status: number = cudaPeekAtLastError()
  return status === Status.success ? undefined : runtimeLibrary.error(status, 'cudaPeekAtLastError')
}

/**
 * Returns name and description of a status (`cudaGetErrorName`, `cudaGetErrorString`).
 *
 * @throws TypeError, RangeError
 */
export function statusText(status: number): StatusText {
  return runtimeLibrary.describeStatus(requireInteger(status, 'statusText', 'status', 0, 0x7fff_ffff))
}

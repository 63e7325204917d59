import { isGone, readCString, Status, type StatusErrors, scratch } from '@shoal/cuda-base'
import {
  type cudaError,
  cudaGetErrorName,
  cudaGetErrorString,
  cudaGetLastError,
  cudaPeekAtLastError,
  cudaRuntimeGetVersion,
} from '@shoal/cuda-sys/runtime'
import { CudaVersion, isStickyCudaStatus, StatusError } from '@shoal/types'

const wordsOf = new Map<number, { readonly name: string; readonly description: string }>()

function describe(status: number): { readonly name: string; readonly description: string } {
  let words = wordsOf.get(status)
  if (words === undefined) {
    words = {
      name: readCString(cudaGetErrorName(status as cudaError)) ?? `cudaError(${status})`,
      description: readCString(cudaGetErrorString(status as cudaError)) ?? 'a code this runtime has no text for',
    }
    wordsOf.set(status, words)
  }
  return words
}

let version: string | undefined

function installedVersion(): string | undefined {
  if (version !== undefined) return version
  const out = scratch()
  const outcome: number = cudaRuntimeGetVersion(out)
  const value = out.i32[0] ?? 0
  if (outcome === Status.success && value > 0) version = CudaVersion.from(value).toString()
  return version
}

/** The error for a status of the runtime, with its own name and text; `detail` is appended to the text. */
function runtimeError(status: number, api: string, detail = ''): StatusError {
  const words = describe(status)
  const libraryVersion = installedVersion()
  return new StatusError({
    library: 'CUDA runtime',
    api,
    status,
    code: words.name,
    description: detail === '' ? words.description : `${words.description}\n${detail}`,
    isSticky: isStickyCudaStatus(status),
    ...(libraryVersion === undefined ? {} : { libraryVersion }),
  })
}

/** Throws unless the status is cudaSuccess. */
export function check(status: number, api: string): void {
  if (status !== Status.success) throw runtimeError(status, api)
}

/** Errors of the CUDA runtime. The runtime shares the driver's codes wherever both have one. */
export const runtimeErrors: StatusErrors = {
  check,
  checkRelease(status, api) {
    if (status !== Status.success && !isGone(status)) throw runtimeError(status, api)
  },
  error: runtimeError,
}

/**
 * The last error of a runtime function on this thread, which counts as read afterwards; undefined where there was none
 * (`cudaGetLastError`). What was thrown as a `StatusError` is in it too.
 */
export function lastError(): StatusError | undefined {
  const status: number = cudaGetLastError()
  return status === Status.success ? undefined : runtimeError(status, 'cudaGetLastError')
}

/** The same without counting it as read (`cudaPeekAtLastError`). */
export function peekLastError(): StatusError | undefined {
  const status: number = cudaPeekAtLastError()
  return status === Status.success ? undefined : runtimeError(status, 'cudaPeekAtLastError')
}

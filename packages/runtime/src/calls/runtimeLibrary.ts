import {
  type cudaError,
  cudaGetDeviceCount,
  cudaGetErrorName,
  cudaGetErrorString,
  cudaGetLastError,
  cudaRuntimeGetVersion,
} from '@shoal/cuda-sys/runtime'
import { type CudaLibrary, Status, scratch, startDriver, watchForEnd } from '@shoal/driver/shared'
import { readCString } from '@shoal/ffi'
import { CudaVersion, isStickyCudaStatus, StatusError } from '@shoal/types'
import { adaptedCalls, adaptedNames } from './adaptedCalls.js'
import { runtimeCalls, runtimeNames } from './runtimeCalls.gen.js'
import {
  copyUnchecked,
  cudaFreeAsyncUnchecked,
  cudaLaunchKernelExCUnchecked,
  cudaMallocAsyncUnchecked,
  cudaMemsetAsyncUnchecked,
  downloadUnchecked,
  uploadUnchecked,
} from './uncheckedCalls.gen.js'

const texts = new Map<number, { readonly name: string; readonly description: string }>()

function describeStatus(status: number): { readonly name: string; readonly description: string } {
  let text = texts.get(status)
  if (text === undefined) {
    text = {
      name: readCString(cudaGetErrorName(status as cudaError)) ?? `cudaError(${status})`,
      description: readCString(cudaGetErrorString(status as cudaError)) ?? 'a code this runtime has no text for',
    }
    texts.set(status, text)
  }
  return text
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

/** Returns the error for a status of the runtime, with its name and text; `detail` is appended. */
function error(status: number, api: string, detail = ''): StatusError {
  const text = describeStatus(status)
  const libraryVersion = installedVersion()
  return new StatusError({
    library: 'CUDA runtime',
    api,
    status,
    code: text.name,
    description: detail === '' ? text.description : `${text.description}\n${detail}`,
    isSticky: isStickyCudaStatus(status),
    ...(libraryVersion === undefined ? {} : { libraryVersion }),
  })
}

/** Throws unless the status is cudaSuccess. */
export function check(status: number, api: string): void {
  if (status !== Status.success) throw error(status, api)
}

let isStarted = false

function start(): void {
  if (isStarted) return
  startDriver()
  check(cudaRuntimeGetVersion(scratch()), 'cudaRuntimeGetVersion')
  watchForEnd()
  isStarted = true
}

/** The CUDA runtime library, libcudart. */
export const runtimeLibrary: CudaLibrary = {
  name: 'runtime',
  calls: { ...runtimeCalls, ...adaptedCalls },
  unchecked: {
    memAllocAsync: cudaMallocAsyncUnchecked,
    memFreeAsync: cudaFreeAsyncUnchecked,
    memsetD8Async: cudaMemsetAsyncUnchecked,
    memcpyDtoDAsync: copyUnchecked,
    memcpyDtoHAsync: downloadUnchecked,
    memcpyHtoDAsync: uploadUnchecked,
    launchKernelEx: cudaLaunchKernelExCUnchecked,
  },
  nameOf: (call) =>
    (adaptedNames as { readonly [call: string]: string })[call] ??
    (runtimeNames as { readonly [call: string]: string })[call] ??
    `cuda${(call[0] as string).toUpperCase()}${call.slice(1)}`,
  error,
  describeStatus,
  deviceArgument: ({ ordinal }) => ordinal,
  forgetNotReady() {
    cudaGetLastError()
  },
  start,
  startForCount: () => cudaGetDeviceCount(scratch()),
}

import {
  type cudaError,
  cudaGetDeviceCount,
  cudaGetErrorName,
  cudaGetErrorString,
  cudaGetLastError,
  cudaRuntimeGetVersion,
  runtime,
} from '@shoal/cuda-sys/runtime'
import { type CudaLibrary, directCalls, Status, scratch, startDriver, watchForEnd } from '@shoal/driver/shared'
import { readCString } from '@shoal/ffi'
import { CudaVersion, isStickyCudaStatus, StatusError } from '@shoal/types'
import { adaptedCalls, adaptedNames } from './adaptedCalls.js'
import { runtimeCalls, runtimeNames } from './runtimeCalls.gen.js'

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

/** The error for a status of the runtime, with its own name and text; `detail` is appended to the text. */
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

const direct = directCalls(runtime)

/** libcudart. */
export const runtimeLibrary: CudaLibrary = {
  name: 'runtime',
  calls: { ...runtimeCalls, ...adaptedCalls },
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
  allocate: direct('cudaMallocAsync', 11020, 3),
  free: direct('cudaFreeAsync', 11020, 2),
  fillBytes: direct('cudaMemsetAsync', 3020, 4),
  copy: direct('cudaMemcpyAsync', 3020, 5),
  upload: direct('cudaMemcpyAsync', 3020, 5),
  download: direct('cudaMemcpyAsync', 3020, 5),
  launch: direct('cudaLaunchKernelExC', 11080, 3),
  start,
  startForCount: () => cudaGetDeviceCount(scratch()),
}

import type { CUcontext, CUdeviceptr, CUstream } from '@shoal/cuda-sys/driver'
import type { NativeMemory } from '@shoal/ffi'
import type { MemoryRange, StatusError } from '@shoal/types'
import type { StatusText } from '../errors.js'
import type { PairedCalls } from './driverCalls.gen.js'
import type {
  cuLaunchKernelExUnchecked,
  cuMemAllocAsyncUnchecked,
  cuMemcpyDtoDAsyncUnchecked,
  cuMemcpyDtoHAsyncUnchecked,
  cuMemcpyHtoDAsyncUnchecked,
  cuMemFreeAsyncUnchecked,
  cuMemsetD8AsyncUnchecked,
} from './uncheckedCalls.gen.js'

/** A device, as the two libraries name it: by its `CUdevice` or its ordinal, its context or its ordinal. */
export interface DeviceReference {
  readonly ordinal: number
  readonly primaryContext: { readonly handle: CUcontext }
}

/**
 * What libcuda and libcudart both do with different arguments. These are adapted by hand; why is said at the adapter of
 * libcudart. Each gives a status.
 */
export interface AdaptedCalls {
  memcpyHtoDAsync(to: CUdeviceptr, from: ArrayBufferView | bigint, byteLength: number, stream: CUstream): number
  memcpyDtoHAsync(to: ArrayBufferView | bigint, from: CUdeviceptr, byteLength: number, stream: CUstream): number
  /** From or to whatever the addresses tell. */
  memcpyAsync(to: CUdeviceptr, from: CUdeviceptr, byteLength: number, stream: CUstream): number
  memcpyPeerAsync(to: CUdeviceptr, toDevice: DeviceReference, from: MemoryRange, stream: CUstream): number
  /**
   * Memory for rows of `width` bytes, in `depth` slices of `height` rows: its address, and behind it the bytes from row
   * to row. `elementBytes`, which libcudart does not ask for, is 4, 8 or 16.
   */
  memAllocPitch(out: NativeMemory, width: number, height: number, depth: number, elementBytes: number): number
  ctxEnablePeerAccess(peer: DeviceReference): number
  ctxDisablePeerAccess(peer: DeviceReference): number
  /** Of the device that is current, or named. */
  devicePrimaryCtxReset(device: number): number
}

/** The functions behind the objects of `driver` and `runtime`, by the driver's names without their prefix. */
export type CudaCalls = PairedCalls & Readonly<AdaptedCalls>
export type CallName = keyof CudaCalls

/** Functions that both libraries have, without the checks of {@link CudaCalls}. */
export interface UncheckedCalls {
  readonly memAllocAsync: typeof cuMemAllocAsyncUnchecked
  readonly memFreeAsync: typeof cuMemFreeAsyncUnchecked
  readonly memsetD8Async: typeof cuMemsetD8AsyncUnchecked
  readonly memcpyDtoDAsync: typeof cuMemcpyDtoDAsyncUnchecked
  readonly memcpyDtoHAsync: typeof cuMemcpyDtoHAsyncUnchecked
  readonly memcpyHtoDAsync: typeof cuMemcpyHtoDAsyncUnchecked
  readonly launchKernelEx: typeof cuLaunchKernelExUnchecked
}
/** A function that an error can name. */
export type NamedCall = CallName | keyof UncheckedCalls

/** The library behind an object: libcuda, or libcudart. Handles are the same in both. */
export interface CudaLibrary {
  readonly name: 'driver' | 'runtime'
  readonly calls: CudaCalls
  readonly unchecked: UncheckedCalls
  /** What a function is called in C. */
  nameOf(call: NamedCall): string
  /** The error for a status of a C function; `detail` is appended to the library's own text. */
  error(status: number, api: string, detail?: string): StatusError
  /** Name and text of a status, as the library tells them. */
  describeStatus(status: number): StatusText
  /** A `CUdevice` for libcuda, an ordinal for libcudart. */
  deviceArgument(device: { readonly ordinal: number; readonly handle: number }): number
  /** libcudart keeps the "not ready" of a query as its last error, though it is none. */
  forgetNotReady(): void
  /** Loads the libraries and starts them, once. @throws LibraryNotFoundError, StatusError */
  start(): void
  /** The same where that there is no device is an answer: its status. */
  startForCount(): number
}

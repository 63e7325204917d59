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

/** A device in the terms of both libraries: libcuda takes a `CUdevice` or a context, libcudart an ordinal. */
export interface DeviceReference {
  readonly ordinal: number
  readonly primaryContext: { readonly handle: CUcontext }
}

/**
 * Functions that libcuda and libcudart both have, with different parameters. The adapters are written by hand; the
 * adapter of libcudart explains why. Each function returns a status.
 */
export interface AdaptedCalls {
  memcpyHtoDAsync(to: CUdeviceptr, from: ArrayBufferView | bigint, byteLength: number, stream: CUstream): number
  memcpyDtoHAsync(to: ArrayBufferView | bigint, from: CUdeviceptr, byteLength: number, stream: CUstream): number
  /** Copies between host and device. The addresses determine the direction. */
  memcpyAsync(to: CUdeviceptr, from: CUdeviceptr, byteLength: number, stream: CUstream): number
  memcpyPeerAsync(to: CUdeviceptr, toDevice: DeviceReference, from: MemoryRange, stream: CUstream): number
  /**
   * Allocates rows of `width` bytes, in `depth` slices of `height` rows. Writes the address to `out`, then the distance
   * between rows in bytes. `elementBytes` is 4, 8 or 16; libcudart ignores it.
   */
  memAllocPitch(out: NativeMemory, width: number, height: number, depth: number, elementBytes: number): number
  ctxEnablePeerAccess(peer: DeviceReference): number
  ctxDisablePeerAccess(peer: DeviceReference): number
  /** Resets the primary context of the current device, or of the named device. */
  devicePrimaryCtxReset(device: number): number
}

/** The C functions behind the objects of `driver` and `runtime`. Keys are libcuda's names without the prefix. */
export type CudaCalls = PairedCalls & Readonly<AdaptedCalls>
export type CallName = keyof CudaCalls

/** Functions of both libraries, without the checks of {@link CudaCalls}. */
export interface UncheckedCalls {
  readonly memAllocAsync: typeof cuMemAllocAsyncUnchecked
  readonly memFreeAsync: typeof cuMemFreeAsyncUnchecked
  readonly memsetD8Async: typeof cuMemsetD8AsyncUnchecked
  readonly memcpyDtoDAsync: typeof cuMemcpyDtoDAsyncUnchecked
  readonly memcpyDtoHAsync: typeof cuMemcpyDtoHAsyncUnchecked
  readonly memcpyHtoDAsync: typeof cuMemcpyHtoDAsyncUnchecked
  readonly launchKernelEx: typeof cuLaunchKernelExUnchecked
}
/** A function that an error message can name. */
export type NamedCall = CallName | keyof UncheckedCalls

/** The library behind an object: libcuda or libcudart. Both use the same handles. */
export interface CudaLibrary {
  readonly name: 'driver' | 'runtime'
  readonly calls: CudaCalls
  readonly unchecked: UncheckedCalls
  /** Returns the C name of a function. */
  nameOf(call: NamedCall): string
  /** Returns the error for a status of a C function. `detail` is appended to the library's own text. */
  error(status: number, api: string, detail?: string): StatusError
  /** Returns the library's name and text for a status. */
  describeStatus(status: number): StatusText
  /** Returns a `CUdevice` for libcuda, an ordinal for libcudart. */
  deviceArgument(device: { readonly ordinal: number; readonly handle: number }): number
  /** Clears the "not ready" of a query, which libcudart wrongly keeps as its last error. */
  forgetNotReady(): void
  /** Loads and starts the libraries once. @throws LibraryNotFoundError, StatusError */
  start(): void
  /** Like {@link start}, but returns the status when there is no device, because a device count needs it. */
  startForCount(): number
}

import type { CUcontext, CUdeviceptr, CUstream } from '@shoal/cuda-sys/driver'
import type { NativeLibrary, NativeMemory } from '@shoal/ffi'
import type { NativeCall } from '@shoal/ffi/calls'
import type { MemoryRange, StatusError } from '@shoal/types'
import type { StatusText } from '../errors.js'
import type { PairedCalls } from './driverCalls.gen.js'

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

/** A function without the checks of the generated one. */
export interface DirectCall {
  /** What C calls it. */
  readonly api: string
  /** Looks it up once. @throws SymbolNotFoundError, VersionTooOldError */
  bind(): NativeCall
}

/** Functions of a library that are called directly. */
export function directCalls(library: Pick<NativeLibrary, 'bind'>) {
  return (api: string, since: number, words: number): DirectCall => {
    let call: NativeCall | undefined
    return { api, bind: () => (call ??= library.bind(api, since, words)) }
  }
}

/** The library behind an object: libcuda, or libcudart. Handles are the same in both. */
export interface CudaLibrary {
  readonly name: 'driver' | 'runtime'
  readonly calls: CudaCalls
  /** What a function is called in C. */
  nameOf(call: CallName): string
  /** The error for a status of a C function; `detail` is appended to the library's own text. */
  error(status: number, api: string, detail?: string): StatusError
  /** Name and text of a status, as the library tells them. */
  describeStatus(status: number): StatusText
  /** A `CUdevice` for libcuda, an ordinal for libcudart. */
  deviceArgument(device: { readonly ordinal: number; readonly handle: number }): number
  /** libcudart keeps the "not ready" of a query as its last error, though it is none. */
  forgetNotReady(): void
  readonly allocate: DirectCall
  readonly free: DirectCall
  readonly fillBytes: DirectCall
  /** Within a device. libcudart's takes a kind before the stream. */
  readonly copy: DirectCall
  /** From memory of the host, and to it. libcudart's is the same function, with a kind before the stream. */
  readonly upload: DirectCall
  readonly download: DirectCall
  /** With a configuration in memory. */
  readonly launch: DirectCall
  /** Loads the libraries and starts them, once. @throws LibraryNotFoundError, StatusError */
  start(): void
  /** The same where that there is no device is an answer: its status. */
  startForCount(): number
}

import {
  downloadNow as baseDownloadNow,
  queueDownload as baseQueueDownload,
  queueUpload as baseQueueUpload,
  uploadNow as baseUploadNow,
  check,
  driverErrors,
  type HostCopyCalls,
} from '@shoal/cuda-base'
import {
  type CUdeviceptr,
  type CUstream,
  cuMemcpyAsync,
  cuMemcpyDtoDAsync,
  cuMemcpyDtoHAsync,
  cuMemcpyHtoDAsync,
  cuMemcpyPeerAsync,
  cuStreamSynchronize,
} from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import type { MemoryRange } from '@shoal/types'
import type { Context } from '../context.js'

/**
 * The copies between host and device. The first argument after the context is always the stream; queued copies
 * return at once. Lengths were checked by the caller; zero bytes are no call at all.
 */

/** Queues a copy of device memory of the same or another device, or of page-locked memory. */
export function queueDeviceCopy(context: Context, stream: CUstream, target: bigint, source: MemoryRange): void {
  const { address, byteLength } = source
  if (byteLength === 0) return
  const to = target as CUdeviceptr
  const from = address as CUdeviceptr
  callInContext(context.handle)
  if (source.device < 0) {
    check(cuMemcpyAsync(to, from, byteLength, stream), 'cuMemcpyAsync')
  } else if (source.device === context.device.ordinal) {
    check(cuMemcpyDtoDAsync(to, from, byteLength, stream), 'cuMemcpyDtoDAsync')
  } else {
    const other = source.context as typeof context._handle
    const status = cuMemcpyPeerAsync(to, context._handle, from, other, byteLength, stream)
    check(status, 'cuMemcpyPeerAsync')
  }
}

const calls: HostCopyCalls = {
  errors: driverErrors,
  toDevice(context, stream, to, from, byteLength) {
    callInContext(context.handle)
    check(cuMemcpyHtoDAsync(to as CUdeviceptr, from, byteLength, stream), 'cuMemcpyHtoDAsync')
  },
  toHost(context, stream, to, from, byteLength) {
    callInContext(context.handle)
    check(cuMemcpyDtoHAsync(to, from as CUdeviceptr, byteLength, stream), 'cuMemcpyDtoHAsync')
  },
  synchronize(context, stream) {
    callInContext(context.handle)
    check(cuStreamSynchronize(stream), 'cuStreamSynchronize')
  },
}

/** Queues a copy to the device. What the array holds now is what arrives, except for page-locked arrays. */
export function queueUpload(context: Context, stream: CUstream, target: bigint, source: ArrayBufferView): void {
  baseQueueUpload(calls, context, stream, target, source)
}

/** Queues a copy to the host and resolves with `result` when the data is in `target`. */
export function queueDownload<T>(
  context: Context,
  stream: CUstream,
  source: bigint,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  return baseQueueDownload(calls, context, stream, source, target, result)
}

/** Copies to the device and waits for it. */
export function uploadNow(context: Context, stream: CUstream, target: bigint, source: ArrayBufferView): void {
  baseUploadNow(calls, context, stream, target, source)
}

/** Copies to the host and waits for it. */
export function downloadNow(context: Context, stream: CUstream, source: bigint, target: ArrayBufferView): void {
  baseDownloadNow(calls, context, stream, source, target)
}

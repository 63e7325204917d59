import { check, driverError, Status } from '@shoal/cuda-base'
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
import { queueHostCopy } from '../wait.js'
import { bytesOf, copyInSlices } from './hostArrays.js'
import { PinnedBuffer } from './pinnedBuffer.js'
import { StagingPool } from './staging.js'

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

/** Queues a copy to the device. What the array holds now is what arrives, except for page-locked arrays. */
export function queueUpload(context: Context, stream: CUstream, target: bigint, source: ArrayBufferView): void {
  const { byteLength } = source
  if (byteLength === 0) return
  const to = target as CUdeviceptr
  const pinned = PinnedBuffer._behind(source)
  let copy: Promise<void>
  if (pinned !== undefined) {
    pinned._hold()
    const queue = (): void =>
      context._call('cuMemcpyHtoDAsync', () => cuMemcpyHtoDAsync(to, source, byteLength, stream))
    copy = queueHostCopy(context, stream, queue, () => pinned._unhold(), ignoreStatus)
  } else {
    const pool = StagingPool.of(context)
    const block = pool.take(byteLength)
    const queue = (): void => {
      block.bytes.set(bytesOf(source))
      context._call('cuMemcpyHtoDAsync', () => cuMemcpyHtoDAsync(to, block.address, byteLength, stream))
    }
    copy = queueHostCopy(context, stream, queue, () => pool.give(block), ignoreStatus)
  }
  // Nobody was given this promise: the next wait on the stream reports what went wrong.
  copy.catch(() => undefined)
}

function ignoreStatus(): void {}

/**
 * Queues a copy to the host and resolves with `result` when the data is in `target`. A rejection that nobody awaits
 * does not end the process: the next wait on the stream reports it too.
 */
export function queueDownload<T>(
  context: Context,
  stream: CUstream,
  source: bigint,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  if (target.byteLength === 0) return Promise.resolve(result)
  const from = source as CUdeviceptr
  const pinned = PinnedBuffer._behind(target)
  const done =
    pinned === undefined
      ? downloadStaged(context, stream, from, target, result)
      : downloadDirect(context, stream, from, target, pinned, result)
  done.catch(() => undefined)
  return done
}

function downloadDirect<T>(
  context: Context,
  stream: CUstream,
  from: CUdeviceptr,
  target: ArrayBufferView,
  pinned: PinnedBuffer,
  result: T,
): Promise<T> {
  pinned._hold()
  const queue = (): void =>
    context._call('cuMemcpyDtoHAsync', () => cuMemcpyDtoHAsync(target, from, target.byteLength, stream))
  return queueHostCopy(
    context,
    stream,
    queue,
    () => pinned._unhold(),
    (status) => {
      requireArrived(status)
      return result
    },
  )
}

function downloadStaged<T>(
  context: Context,
  stream: CUstream,
  from: CUdeviceptr,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  const { byteLength } = target
  const pool = StagingPool.of(context)
  const block = pool.take(byteLength)
  const queue = (): void =>
    context._call('cuMemcpyDtoHAsync', () => cuMemcpyDtoHAsync(block.address, from, byteLength, stream))
  return queueHostCopy(
    context,
    stream,
    queue,
    () => pool.give(block),
    async (status) => {
      requireArrived(status)
      await copyInSlices(bytesOf(target), block.bytes.subarray(0, byteLength))
      return result
    },
  )
}

function requireArrived(status: number): void {
  if (status !== Status.success) throw driverError(status, 'cuEventQuery', 'while DeviceBuffer.copyTo was waiting')
}

/** Copies to the device and waits for it. */
export function uploadNow(context: Context, stream: CUstream, target: bigint, source: ArrayBufferView): void {
  if (source.byteLength === 0) return
  context.run(() => {
    // The plain cuMemcpyHtoD may return before the last bytes have arrived.
    const status = cuMemcpyHtoDAsync(target as CUdeviceptr, source, source.byteLength, stream)
    check(status, 'cuMemcpyHtoDAsync')
    check(cuStreamSynchronize(stream), 'cuStreamSynchronize')
  })
}

/** Copies to the host and waits for it. */
export function downloadNow(context: Context, stream: CUstream, source: bigint, target: ArrayBufferView): void {
  if (target.byteLength === 0) return
  context.run(() => {
    const status = cuMemcpyDtoHAsync(target, source as CUdeviceptr, target.byteLength, stream)
    check(status, 'cuMemcpyDtoHAsync')
    check(cuStreamSynchronize(stream), 'cuStreamSynchronize')
  })
}

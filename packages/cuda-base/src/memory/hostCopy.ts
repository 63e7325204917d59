import type { CUdeviceptr, CUstream } from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { Status } from '../errors.js'
import { queueHostCopy } from '../waiting/wait.js'
import { byteLengthOf, bytesOf } from './arrayBytes.js'
import { copyInSlices } from './copyInSlices.js'
import { type PinnedOwner, pinnedOwnerOf } from './pinnedRegistry.js'
import { StagingPool } from './staging.js'

/** Queues a copy from host memory (`cuMemcpyHtoDAsync`, `cudaMemcpyAsync`). */
function toDevice(
  context: Context,
  stream: CUstream,
  to: bigint,
  from: ArrayBufferView | bigint,
  byteLength: number,
): void {
  callInContext(context.handle)
  const status = context._cuda.calls.memcpyHtoDAsync(to as CUdeviceptr, from, byteLength, stream)
  if (status !== Status.success) throw context._error(status, 'memcpyHtoDAsync')
}

/** Queues a copy to host memory (`cuMemcpyDtoHAsync`, `cudaMemcpyAsync`). */
function toHost(
  context: Context,
  stream: CUstream,
  to: ArrayBufferView | bigint,
  from: bigint,
  byteLength: number,
): void {
  callInContext(context.handle)
  const status = context._cuda.calls.memcpyDtoHAsync(to, from as CUdeviceptr, byteLength, stream)
  if (status !== Status.success) throw context._error(status, 'memcpyDtoHAsync')
}

/** Queues a copy to the device. What the array holds now is what arrives, except for page-locked arrays. */
export function queueUpload(context: Context, stream: CUstream, target: bigint, source: ArrayBufferView): void {
  const byteLength = byteLengthOf(source)
  if (byteLength === 0) return
  const pinned = pinnedOwnerOf(source)
  let copy: Promise<void>
  if (pinned !== undefined) {
    pinned._hold()
    const queue = (): void => toDevice(context, stream, target, source, byteLength)
    copy = queueHostCopy(context, stream, queue, () => pinned._unhold(), ignoreStatus)
  } else {
    const pool = StagingPool.of(context)
    const block = pool.take(byteLength)
    const queue = (): void => {
      block.bytes.set(bytesOf(source))
      toDevice(context, stream, target, block.address, byteLength)
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
  if (byteLengthOf(target) === 0) return Promise.resolve(result)
  const pinned = pinnedOwnerOf(target)
  const done =
    pinned === undefined
      ? downloadStaged(context, stream, source, target, result)
      : downloadDirect(context, stream, source, target, pinned, result)
  done.catch(() => undefined)
  return done
}

function downloadDirect<T>(
  context: Context,
  stream: CUstream,
  from: bigint,
  target: ArrayBufferView,
  pinned: PinnedOwner,
  result: T,
): Promise<T> {
  pinned._hold()
  const queue = (): void => toHost(context, stream, target, from, byteLengthOf(target))
  return queueHostCopy(
    context,
    stream,
    queue,
    () => pinned._unhold(),
    (status) => {
      requireArrived(context, status)
      return result
    },
  )
}

function downloadStaged<T>(
  context: Context,
  stream: CUstream,
  from: bigint,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  const bytes = bytesOf(target)
  const byteLength = bytes.length
  const pool = StagingPool.of(context)
  const block = pool.take(byteLength)
  const queue = (): void => toHost(context, stream, block.address, from, byteLength)
  return queueHostCopy(
    context,
    stream,
    queue,
    () => pool.give(block),
    async (status) => {
      requireArrived(context, status)
      await copyInSlices(bytes, block.bytes.subarray(0, byteLength), 'DeviceBuffer.copyTo: target')
      return result
    },
  )
}

function requireArrived({ _cuda: cuda }: Context, status: number): void {
  if (status !== Status.success) throw cuda.error(status, 'cuEventQuery', 'while copyTo was waiting')
}

/** Copies to the device and waits for it: a plain copy may return before the last bytes have arrived. */
export function uploadNow(context: Context, stream: CUstream, target: bigint, source: ArrayBufferView): void {
  const byteLength = byteLengthOf(source)
  if (byteLength === 0) return
  toDevice(context, stream, target, source, byteLength)
  context._call('streamSynchronize', stream)
}

/** Copies to the host and waits for it. */
export function downloadNow(context: Context, stream: CUstream, source: bigint, target: ArrayBufferView): void {
  if (byteLengthOf(target) === 0) return
  toHost(context, stream, target, source, byteLengthOf(target))
  context._call('streamSynchronize', stream)
}

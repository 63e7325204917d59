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
import { check } from '../errors.js'
import { settle, streamStatus } from '../wait.js'
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
  if (pinned !== undefined) {
    pinned._hold()
    const release = (): void => pinned._unhold()
    guarded(release, () => {
      context._call('cuMemcpyHtoDAsync', () => cuMemcpyHtoDAsync(to, source, byteLength, stream))
      streamStatus(context, stream).then(release, release)
    })
    return
  }
  const pool = StagingPool.of(context)
  const block = pool.take(byteLength)
  const release = (): void => pool.give(block)
  guarded(release, () => {
    block.bytes.set(bytesOf(source))
    context._call('cuMemcpyHtoDAsync', () => cuMemcpyHtoDAsync(to, block.address, byteLength, stream))
    streamStatus(context, stream).then(release, release)
  })
}

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
  const release = (): void => pinned._unhold()
  return guarded(release, () => {
    context._call('cuMemcpyDtoHAsync', () => cuMemcpyDtoHAsync(target, from, target.byteLength, stream))
    return settle(streamStatus(context, stream).finally(release), result, {}, 'DeviceBuffer.copyTo')
  })
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
  return guarded(
    () => pool.give(block),
    () => {
      context._call('cuMemcpyDtoHAsync', () => cuMemcpyDtoHAsync(block.address, from, byteLength, stream))
      const work = settle(streamStatus(context, stream), result, {}, 'DeviceBuffer.copyTo')
      return work
        .then(() => copyInSlices(bytesOf(target), block.bytes.subarray(0, byteLength)))
        .finally(() => pool.give(block))
        .then(() => result)
    },
  )
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

/** Runs `work`; when it cannot even be queued, `release` undoes what was prepared. */
function guarded<T>(release: () => void, work: () => T): T {
  try {
    return work()
  } catch (error) {
    release()
    throw error
  }
}

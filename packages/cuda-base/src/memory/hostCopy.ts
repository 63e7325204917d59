import type { CUstream } from '@shoal/cuda-sys/driver'
import type { Context } from '../context.js'
import { Status, type StatusErrors } from '../errors.js'
import { queueHostCopy } from '../stream/wait.js'
import { type HeldMemory, heldBehind } from './held.js'
import { bytesOf, copyInSlices } from './hostArrays.js'
import { StagingPool } from './staging.js'

/** The copies between host and device, by the functions of the driver or of the runtime. Each checks its status. */
export interface HostCopyCalls {
  readonly errors: StatusErrors
  toDevice(context: Context, stream: CUstream, to: bigint, from: ArrayBufferView | bigint, byteLength: number): void
  toHost(context: Context, stream: CUstream, to: ArrayBufferView | bigint, from: bigint, byteLength: number): void
  synchronize(context: Context, stream: CUstream): void
}

/** Queues a copy to the device. What the array holds now is what arrives, except for page-locked arrays. */
export function queueUpload(
  calls: HostCopyCalls,
  context: Context,
  stream: CUstream,
  target: bigint,
  source: ArrayBufferView,
): void {
  const { byteLength } = source
  if (byteLength === 0) return
  const pinned = heldBehind(source)
  let copy: Promise<void>
  if (pinned !== undefined) {
    pinned._hold()
    const queue = (): void => calls.toDevice(context, stream, target, source, byteLength)
    copy = queueHostCopy(context, stream, queue, () => pinned._unhold(), ignoreStatus)
  } else {
    const pool = StagingPool.of(context)
    const block = pool.take(byteLength)
    const queue = (): void => {
      block.bytes.set(bytesOf(source))
      calls.toDevice(context, stream, target, block.address, byteLength)
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
  calls: HostCopyCalls,
  context: Context,
  stream: CUstream,
  source: bigint,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  if (target.byteLength === 0) return Promise.resolve(result)
  const pinned = heldBehind(target)
  const done =
    pinned === undefined
      ? downloadStaged(calls, context, stream, source, target, result)
      : downloadDirect(calls, context, stream, source, target, pinned, result)
  done.catch(() => undefined)
  return done
}

function downloadDirect<T>(
  calls: HostCopyCalls,
  context: Context,
  stream: CUstream,
  from: bigint,
  target: ArrayBufferView,
  pinned: HeldMemory,
  result: T,
): Promise<T> {
  pinned._hold()
  const queue = (): void => calls.toHost(context, stream, target, from, target.byteLength)
  return queueHostCopy(
    context,
    stream,
    queue,
    () => pinned._unhold(),
    (status) => {
      requireArrived(calls, status)
      return result
    },
  )
}

function downloadStaged<T>(
  calls: HostCopyCalls,
  context: Context,
  stream: CUstream,
  from: bigint,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  const { byteLength } = target
  const pool = StagingPool.of(context)
  const block = pool.take(byteLength)
  const queue = (): void => calls.toHost(context, stream, block.address, from, byteLength)
  return queueHostCopy(
    context,
    stream,
    queue,
    () => pool.give(block),
    async (status) => {
      requireArrived(calls, status)
      await copyInSlices(bytesOf(target), block.bytes.subarray(0, byteLength))
      return result
    },
  )
}

function requireArrived({ errors }: HostCopyCalls, status: number): void {
  if (status !== Status.success) throw errors.error(status, 'cuEventQuery', 'while copyTo was waiting')
}

/** Copies to the device and waits for it: a plain copy may return before the last bytes have arrived. */
export function uploadNow(
  calls: HostCopyCalls,
  context: Context,
  stream: CUstream,
  target: bigint,
  source: ArrayBufferView,
): void {
  if (source.byteLength === 0) return
  calls.toDevice(context, stream, target, source, source.byteLength)
  calls.synchronize(context, stream)
}

/** Copies to the host and waits for it. */
export function downloadNow(
  calls: HostCopyCalls,
  context: Context,
  stream: CUstream,
  source: bigint,
  target: ArrayBufferView,
): void {
  if (target.byteLength === 0) return
  calls.toHost(context, stream, target, source, target.byteLength)
  calls.synchronize(context, stream)
}

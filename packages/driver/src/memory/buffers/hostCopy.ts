import type { CUdeviceptr, CUstream } from '@shoal/cuda-sys/driver'
import { callInContext, NativeMemory } from '@shoal/ffi'
import { type StagedCopy, stagedCopyFrom, stagedCopyTo } from '@shoal/ffi/calls'
import { settledNow } from '@shoal/types'
import { isCapturing, refuseInCapture } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import { byteLengthOf, bytesOf } from '../../core/ranges/arrayBytes.js'
import { type PinnedOwner, pinnedOwnerOf } from '../../core/ranges/pinnedRegistry.js'
import { AwaitedCopy, queueHostCopy, queueUnobservedCopy } from '../../core/waiting/copyWait.js'
import type { StreamQueue } from '../../core/waiting/unmarkedWork.js'
import { useUntilEnd } from '../../core/waiting/unmarkedWork.js'
import { copyInSlices } from './copyInSlices.js'
import { copyInHostPool } from './hostPoolCopy.js'
import { queuePinnedCopy } from './pinnedCopy.js'
import { keptBytes, partBytes, type StagingBlock, StagingPool } from './staging.js'

/** Maximum bytes that this thread copies in one piece, which takes 0.1 ms. */
const mostAtOnce = 1024 * 1024

/** Memory with gaps between its rows. It copies a range as if its rows were contiguous. */
export interface RowsInMemory {
  /** Name of the object in errors. */
  readonly kind: string
  copyIn(context: Context, stream: CUstream, start: number, from: ArrayBufferView | bigint, byteLength: number): void
  copyOut(context: Context, stream: CUstream, start: number, to: ArrayBufferView | bigint, byteLength: number): void
}

/** Device side of a copy: an address, or rows. */
export type CopyPlace = bigint | RowsInMemory

function kindOf(place: CopyPlace): string {
  return typeof place === 'bigint' ? 'DeviceBuffer' : place.kind
}

/** Queues a copy from host memory (`cuMemcpyHtoDAsync`, `cudaMemcpyAsync`). */
function toDevice(
  context: Context,
  stream: CUstream,
  to: CopyPlace,
  from: ArrayBufferView | bigint,
  byteLength: number,
  start = 0,
): void {
  if (typeof to !== 'bigint') {
    to.copyIn(context, stream, start, from, byteLength)
    return
  }
  callInContext(context.handle)
  const target = (start === 0 ? to : to + BigInt(start)) as CUdeviceptr
  let status = context._cuda.calls.memcpyHtoDAsync(target, from, byteLength, stream)
  if (status === Status.invalidValue) status = copyInHostPool(context, stream, [target], target, from, byteLength)
  if (status !== Status.success) throw context._error(status, 'memcpyHtoDAsync')
}

/** Queues a copy to host memory (`cuMemcpyDtoHAsync`, `cudaMemcpyAsync`). */
function toHost(
  context: Context,
  stream: CUstream,
  to: ArrayBufferView | bigint,
  from: CopyPlace,
  byteLength: number,
  start = 0,
): void {
  if (typeof from !== 'bigint') {
    from.copyOut(context, stream, start, to, byteLength)
    return
  }
  callInContext(context.handle)
  const source = (start === 0 ? from : from + BigInt(start)) as CUdeviceptr
  let status = context._cuda.calls.memcpyDtoHAsync(to, source, byteLength, stream)
  if (status === Status.invalidValue) status = copyInHostPool(context, stream, [source], to, source, byteLength)
  if (status !== Status.success) throw context._error(status, 'memcpyDtoHAsync')
}

/** Queues a copy to the device. The array must not change until the copy completes. */
export function queueUpload(context: Context, queue: StreamQueue, target: CopyPlace, source: ArrayBufferView): void {
  const byteLength = byteLengthOf(source)
  if (byteLength === 0) return
  const pinned = pinnedOwnerOf(source)
  if (isCapturing()) {
    if (pinned === undefined) refuseInCapture(`${kindOf(target)}.copyFrom`, 'an ordinary array')
    toDevice(context, queue._handle, target, source, byteLength)
    return
  }
  // No caller awaits this copy. The next wait on the stream reports an error.
  if (pinned === undefined) {
    uploadStaged(context, queue, target, bytesOf(source))
    return
  }
  pinned._hold()
  try {
    if (typeof target === 'bigint') queuePinnedCopy(context, queue._halves, true, target, pinned, source)
    else toDevice(context, queue._handle, target, source, byteLength)
  } catch (error) {
    pinned._unhold()
    throw error
  }
  useUntilEnd(context, queue, pinned, false)
}

function uploadStaged(context: Context, queue: StreamQueue, target: CopyPlace, source: Uint8Array): void {
  const byteLength = source.length
  const stream = queue._handle
  const pool = StagingPool.of(context)
  if (byteLength > mostAtOnce) {
    const block = pool.take(partBytes)
    const parts = stagedCopyFrom(block.address, source, byteLength, halfBlock)
    if (parts !== undefined) {
      const toNext = (start: number, bytes: number): void => {
        context._call('launchHostFunc', stream, parts.functionAddress, parts.userData)
        toDevice(context, stream, target, halfFor(block, start), bytes, start)
      }
      const { copy, giveBack } = copyInParts({ context, byteLength, block, parts, memory: source }, toNext)
      queueUnobservedCopy(context, queue, copy, giveBack)
      return
    }
    pool.give(block)
  }
  const block = pool.take(byteLength)
  const copy = (): void => {
    block.bytes.set(source)
    toDevice(context, stream, target, block.address, byteLength)
  }
  queueUnobservedCopy(context, queue, copy, () => pool.give(block))
}

/** Bytes per part. The device uses one half of the block while threads use the other. */
const halfBlock = partBytes / 2

function halfFor(block: StagingBlock, start: number): bigint {
  return block.address + BigInt(start % partBytes)
}

/** A large copy through one block. The stream alternates between the block's halves. */
interface CopyInParts {
  readonly context: Context
  readonly byteLength: number
  readonly block: StagingBlock
  readonly parts: StagedCopy
  /** The stream's source or target. It stays reachable until the copy completes. */
  readonly memory: Uint8Array | NativeMemory
}

function copyInParts(
  { context, byteLength, block, parts, memory }: CopyInParts,
  queuePart: (start: number, bytes: number) => void,
): { readonly copy: (begun: () => void) => void; readonly giveBack: () => void } {
  const held: unknown[] = [memory]
  return {
    copy: (begun) => {
      begun()
      for (let start = 0; start < byteLength; start += halfBlock) {
        queuePart(start, Math.min(halfBlock, byteLength - start))
      }
    },
    giveBack: () => {
      // Dispose of the memory before parts.end(), which releases the last reference to it.
      if (memory instanceof NativeMemory) memory.dispose()
      parts.end()
      held.length = 0
      StagingPool.of(context).give(block)
    },
  }
}

/**
 * Queues a copy to the host. Resolves with `result` when the data is in `target`. An unawaited rejection does not end
 * the process, because the next wait on the stream reports the error too.
 */
export function queueDownload<T>(
  context: Context,
  queue: StreamQueue,
  source: CopyPlace,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  if (byteLengthOf(target) === 0) return settledNow(result)
  const pinned = pinnedOwnerOf(target)
  if (isCapturing()) {
    if (pinned === undefined) refuseInCapture(`${kindOf(source)}.copyTo`, 'an ordinary array')
    toHost(context, queue._handle, target, source, byteLengthOf(target))
    return settledNow(result)
  }
  pinned?._hold()
  return pinned === undefined
    ? downloadStaged(context, queue, source, target, result)
    : new PinnedDownload(context, queue, source, target, pinned, result).start()
}

class PinnedDownload<T> extends AwaitedCopy<T> {
  readonly #from: CopyPlace
  readonly #to: ArrayBufferView
  readonly #pinned: PinnedOwner
  readonly #result: T

  constructor(
    context: Context,
    queue: StreamQueue,
    from: CopyPlace,
    to: ArrayBufferView,
    pinned: PinnedOwner,
    result: T,
  ) {
    super(context, queue)
    this.#from = from
    this.#to = to
    this.#pinned = pinned
    this.#result = result
  }

  protected copy(queue: StreamQueue): void {
    const [from, to] = [this.#from, this.#to]
    if (typeof from === 'bigint') queuePinnedCopy(this.context, queue._halves, false, from, this.#pinned, to)
    else toHost(this.context, queue._handle, to, from, byteLengthOf(to))
  }

  protected giveBack(): void {
    this.#pinned._unhold()
  }

  protected whenOver(status: number): T {
    requireArrived(this.context, status)
    return this.#result
  }
}

function downloadStaged<T>(
  context: Context,
  queue: StreamQueue,
  from: CopyPlace,
  target: ArrayBufferView,
  result: T,
): Promise<T> {
  const bytes = bytesOf(target)
  const byteLength = bytes.length
  if (byteLength > keptBytes) return downloadInParts(context, queue, from, bytes, result)
  const pool = StagingPool.of(context)
  const block = pool.take(byteLength)
  const copy = (): void => toHost(context, queue._handle, block.address, from, byteLength)
  const arrive = arrival(bytes, () => block.bytes.subarray(0, byteLength), context, result, kindOf(from))
  return queueHostCopy(context, queue, copy, () => pool.give(block), arrive)
}

/**
 * Copies to the host through one block. Page-locked memory for the whole copy would have to be allocated on this
 * thread. The stream writes to memory of Shoal, because only this thread can check that the array still exists.
 */
function downloadInParts<T>(
  context: Context,
  queue: StreamQueue,
  from: CopyPlace,
  target: Uint8Array,
  result: T,
): Promise<T> {
  const byteLength = target.length
  const block = StagingPool.of(context).take(partBytes)
  let memory: NativeMemory
  let parts: StagedCopy
  try {
    memory = NativeMemory.allocate(byteLength)
    parts = stagedCopyTo(block.address, memory, byteLength, halfBlock)
  } catch (error) {
    StagingPool.of(context).give(block)
    throw error
  }
  const stream = queue._handle
  const fromNext = (start: number, bytes: number): void => {
    toHost(context, stream, halfFor(block, start), from, bytes, start)
    context._call('launchHostFunc', stream, parts.functionAddress, parts.userData)
  }
  const arrive = arrival(target, () => memory.bytes, context, result, kindOf(from))
  // From now on giveBack frees the memory and the block after the last write, also after an error.
  const { copy, giveBack } = copyInParts({ context, byteLength, block, parts, memory }, fromNext)
  return queueHostCopy(context, queue, copy, giveBack, arrive)
}

/** Returns a callback that copies the received bytes into the program's array. */
function arrival<T>(target: Uint8Array, arrived: () => Uint8Array, context: Context, result: T, kind: string) {
  return (status: number): T | Promise<T> => {
    requireArrived(context, status)
    const rest = copyInSlices(target, arrived(), `${kind}.copyTo: target`)
    return rest === undefined ? result : rest.then(() => result)
  }
}

function requireArrived({ _cuda: cuda }: Context, status: number): void {
  if (status !== Status.success) throw cuda.error(status, 'cuEventQuery', 'while copyTo was waiting')
}

/** Copies to the device and waits, because a plain copy may return before the last bytes have arrived. */
export function uploadNow(context: Context, stream: CUstream, target: CopyPlace, source: ArrayBufferView): void {
  const byteLength = byteLengthOf(source)
  if (byteLength === 0) return
  toDevice(context, stream, target, source, byteLength)
  waitFor(context, stream)
}

/** Copies to the host and waits. */
export function downloadNow(context: Context, stream: CUstream, source: CopyPlace, target: ArrayBufferView): void {
  if (byteLengthOf(target) === 0) return
  toHost(context, stream, target, source, byteLengthOf(target))
  waitFor(context, stream)
}

function waitFor(context: Context, stream: CUstream): void {
  callInContext(context._handle)
  const status = context._cuda.calls.streamSynchronize(stream)
  if (status !== Status.success) throw context._error(status, 'streamSynchronize')
}

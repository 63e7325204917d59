import type { CUstream } from '@shoal/cuda-sys/driver'
import {
  type DType,
  type ElementArrayOf,
  type ElementInputOf,
  type ElementType,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  optionsChecker,
  type StreamArgument,
} from '@shoal/types'
import { isCapturing } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { Resource } from '../../core/lifetime.js'
import { orderBehind, type Producer } from '../../core/stream/orderBehind.js'
import { queueFor } from '../../core/stream/stream.js'
import type { StreamQueue } from '../../core/waiting/unmarkedWork.js'
import { queueCopy } from './deviceCopy.js'
import { type ElementValue, elementBytes, isZero, structBytes } from './elements.js'
import { arrayFor, type HostArrayOf } from './elementType.js'
import { queueBytes, queueFill } from './fill.js'
import { downloadNow, queueDownload, queueUpload, uploadNow } from './hostCopy.js'
import type { PinnedBuffer } from './pinnedBuffer.js'
import { checkSource, checkTarget } from './typed.js'

/** Options for queued operations. */
export interface QueueOptions {
  /**
   * A stream of any package, its handle, or `null` for the default stream. Default: the stream of `Stream.use`, else
   * the default stream.
   */
  readonly stream?: StreamArgument | undefined
}

const requireQueueOptions = optionsChecker<QueueOptions>({ stream: true })

/** Source of a copy to device memory: an array, page-locked memory, or device memory of any device and package. */
export type CopySource<E extends ElementType> = ElementInputOf<E> | HostArrayOf<E> | MemoryLike

/** Target of a copy from device memory: a typed array or page-locked memory. */
export type CopyTarget<E extends ElementType> = HostArrayOf<E> | PinnedBuffer<E>

/** Copies and fills of device memory. */
export abstract class DeviceTransfers<E extends ElementType = DType> extends Resource implements MemoryLike {
  abstract readonly dtype: E
  abstract readonly length: number
  abstract readonly byteLength: number
  abstract readonly context: Context
  abstract readonly [memoryProtocol]: MemoryRange
  /** @internal Pending work on the viewed memory, as last read; usually undefined. */
  abstract readonly _pending: Producer | undefined

  /** @internal Returns the address. @throws DisposedError */
  abstract _use(): bigint
  /** @internal */
  abstract _rangeOfLike(source: unknown): MemoryRange | undefined

  /**
   * Queues a fill of every element with one value (`cuMemsetD8Async` … `cuMemsetD32Async`, `cudaMemsetAsync`).
   * @throws TypeError, RangeError for a value that the element type cannot hold; DisposedError, StatusError
   */
  fill(value: ElementValue<E>, options?: QueueOptions): this {
    queueFillOf(this, value, options, 'DeviceBuffer.fill')
    return this
  }

  /** Fills every element with one value and blocks until the fill completes. @throws as {@link fill} */
  fillSync(value: ElementValue<E>, options?: QueueOptions): this {
    this.context._call('streamSynchronize', queueFillOf(this, value, options, 'DeviceBuffer.fillSync'))
    return this
  }

  /**
   * Queues a copy from `source`, which must have the same length as this memory. Use `slice` to copy parts
   * (`cuMemcpyHtoDAsync`, `cuMemcpyDtoDAsync`, `cuMemcpyPeerAsync`, `cudaMemcpyAsync`, `cudaMemcpyPeerAsync`).
   *
   * Do not change or detach a host array, page-locked or not, until the copy completes (see `stream.synchronize()`):
   * otherwise the copied data is undefined. The copy keeps the array alive. Device memory can belong to another device,
   * with or without peer access.
   * @throws TypeError for another dtype; RangeError for another length, or a source that partly overlaps this memory;
   * DisposedError, StatusError
   *
   * @example
   * x.copyFrom(new Float32Array(x.length), { stream })
   * x.slice(0, 4).copyFrom(y.slice(4, 8), { stream })
   */
  copyFrom(source: CopySource<E>, options?: QueueOptions): this {
    const api = 'DeviceBuffer.copyFrom'
    const { context } = this
    const queue = queueOf(this, options, api)
    const from = sourceFor(this, source, api)
    const address = useBehind(this, queue)
    if (ArrayBuffer.isView(from)) queueUpload(context, queue, address, from)
    else queueCopyBehind(context, queue, address, from, api)
    if (isCapturing()) keepCaptured(context._handle, queue._handle, [this, source, from])
    return this
  }

  /** Copies like {@link copyFrom} and blocks until the copy completes. */
  copyFromSync(source: CopySource<E>, options?: QueueOptions): this {
    const api = 'DeviceBuffer.copyFromSync'
    const { context } = this
    const queue = queueOf(this, options, api)
    const from = sourceFor(this, source, api)
    const address = useBehind(this, queue)
    if (ArrayBuffer.isView(from)) {
      uploadNow(context, queue._handle, address, from)
      return this
    }
    queueCopyBehind(context, queue, address, from, api)
    context._call('streamSynchronize', queue._handle)
    return this
  }

  /**
   * Queues a copy into host memory of the same length. Resolves with the host memory when the data has arrived.
   * @throws TypeError for an array of another type, RangeError for another length; DisposedError, StatusError
   *
   * @example
   * const result = new Float32Array(x.length)
   * await x.copyTo(result, { stream })
   */
  copyTo<T extends CopyTarget<E>>(target: T, options?: QueueOptions): Promise<T> {
    return download(this, target, options, 'DeviceBuffer.copyTo')
  }

  /** Copies into host memory of the same length and blocks until the data has arrived. @throws as {@link copyTo} */
  copyToSync<T extends CopyTarget<E>>(target: T, options?: QueueOptions): T {
    downloadAndWait(this, target, options, 'DeviceBuffer.copyToSync')
    return target
  }

  /**
   * Reads the elements in stream order. Resolves with a new typed array, or with a list of structs.
   *
   * @example
   * const elements = await x.toArray({ stream })
   */
  toArray(options?: QueueOptions): Promise<ElementArrayOf<E>> {
    const { dtype } = this
    const array = arrayFor(dtype, this.length) as HostArrayOf<E>
    const copied: Promise<ArrayBufferView> = download(this, array, options, 'DeviceBuffer.toArray')
    return typeof dtype === 'string'
      ? (copied as Promise<ElementArrayOf<E>>)
      : copied.then((array) => elementsFrom(array, dtype))
  }

  /** Reads the elements like {@link toArray} and blocks until they have arrived. */
  toArraySync(options?: QueueOptions): ElementArrayOf<E> {
    const array = arrayFor(this.dtype, this.length)
    downloadAndWait(this, array as HostArrayOf<E>, options, 'DeviceBuffer.toArraySync')
    return elementsFrom(array, this.dtype)
  }
}

// These are functions, because private methods would make each buffer more expensive.

function sourceFor<E extends ElementType>(
  to: DeviceTransfers<E>,
  source: CopySource<E>,
  api: string,
): ArrayBufferView | MemoryRange {
  return to._rangeOfLike(source) ?? checkSource(structBytes(source, to.dtype, api, 'source'), to, api)
}

function download<E extends ElementType, T extends CopyTarget<E>>(
  from: DeviceTransfers<E>,
  target: T,
  options: QueueOptions | undefined,
  api: string,
): Promise<T> {
  try {
    const queue = queueOf(from, options, api)
    const to = checkTarget(target, from, api)
    const copied = queueDownload(from.context, queue, useBehind(from, queue), to, target)
    if (isCapturing()) keepCaptured(from.context._handle, queue._handle, [from, target, to])
    return copied
  } catch (error) {
    return Promise.reject(error)
  }
}

function downloadAndWait<E extends ElementType>(
  from: DeviceTransfers<E>,
  target: CopyTarget<E>,
  options: QueueOptions | undefined,
  api: string,
): void {
  const queue = queueOf(from, options, api)
  const to = checkTarget(target, from, api)
  downloadNow(from.context, queue._handle, useBehind(from, queue), to)
}

function queueFillOf<E extends ElementType>(
  buffer: DeviceTransfers<E>,
  value: ElementValue<E>,
  options: QueueOptions | undefined,
  api: string,
): CUstream {
  const { context, dtype } = buffer
  const queue = queueOf(buffer, options, api)
  const element = isZero(dtype, value) ? undefined : elementBytes(dtype, value, api, 'value')
  const address = useBehind(buffer, queue)
  if (element === undefined) queueBytes(context, queue._halves, address, 0, buffer.byteLength)
  else queueFill(context, queue._halves, address, element, buffer.length)
  if (isCapturing()) keepCaptured(context._handle, queue._handle, [buffer])
  return queue._handle
}

function elementsFrom<E extends ElementType>(array: ArrayBufferView, dtype: E): ElementArrayOf<E> {
  return (typeof dtype === 'string' ? array : dtype.decode(array)) as ElementArrayOf<E>
}

/** Returns the stream of an operation. @throws TypeError for a stream in place of options */
function queueOf(memory: DeviceTransfers<ElementType>, options: QueueOptions | undefined, api: string): StreamQueue {
  return queueFor(memory.context, options === undefined ? undefined : streamIn(options, api), api)
}

/**
 * Returns the memory's address and makes the queue wait for pending work on the memory. Called last, because a getter
 * of the arguments may have disposed of the memory.
 */
function useBehind(memory: DeviceTransfers<ElementType>, queue: StreamQueue): bigint {
  const address = memory._use()
  if (memory._pending !== undefined) orderBehind(queue._handle, memory.context.handle, memory._pending)
  return address
}

/** Reads the `stream` option, then counts the keys, like `LaunchShape.set`. */
function streamIn(options: QueueOptions, api: string): StreamArgument | undefined {
  let stream: StreamArgument | undefined
  try {
    stream = options.stream
  } catch (error) {
    requireQueueOptions(options, api)
    throw error
  }
  let keys = stream === undefined ? 0 : -1
  for (const _ in options) keys += 1
  if (keys !== 0 || Object.getPrototypeOf(options) !== Object.prototype) requireQueueOptions(options, api)
  return stream
}

function queueCopyBehind(context: Context, queue: StreamQueue, target: bigint, source: MemoryRange, api: string): void {
  if (source.stream !== undefined) orderBehind(queue._handle, context.handle, source)
  queueCopy(context, queue, target, source, api)
}

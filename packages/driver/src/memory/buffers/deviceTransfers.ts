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

/** Where an operation is queued. */
export interface QueueOptions {
  /**
   * A stream of any package, its handle, or `null` for the default stream. Default: that of `Stream.use`, else the
   * default stream.
   */
  readonly stream?: StreamArgument | undefined
}

const requireQueueOptions = optionsChecker<QueueOptions>({ stream: true })

/** What device memory can be filled from: an array, page-locked memory, or device memory of any device and package. */
export type CopySource<E extends ElementType> = ElementInputOf<E> | HostArrayOf<E> | MemoryLike

/** What device memory can be read into: a typed array or page-locked memory. */
export type CopyTarget<E extends ElementType> = HostArrayOf<E> | PinnedBuffer<E>

/** What is written to device memory and read from it. */
export abstract class DeviceTransfers<E extends ElementType = DType> extends Resource implements MemoryLike {
  abstract readonly dtype: E
  abstract readonly length: number
  abstract readonly byteLength: number
  abstract readonly context: Context
  abstract readonly [memoryProtocol]: MemoryRange
  /** @internal What is pending on the memory that a view looks into, as it was last read; undefined for most. */
  abstract readonly _pending: Producer | undefined

  /** @internal The address, or DisposedError. */
  abstract _use(): bigint
  /** @internal */
  abstract _rangeOfLike(source: unknown): MemoryRange | undefined

  /**
   * Queues the writing of one value to every element (`cuMemsetD8Async` … `cuMemsetD32Async`, `cudaMemsetAsync`).
   * @throws TypeError, RangeError for a value that the element type cannot hold; DisposedError, StatusError
   */
  fill(value: ElementValue<E>, options?: QueueOptions): this {
    queueFillOf(this, value, options, 'DeviceBuffer.fill')
    return this
  }

  /** Writes one value to every element and blocks until it is done. @throws as {@link fill} */
  fillSync(value: ElementValue<E>, options?: QueueOptions): this {
    this.context._call('streamSynchronize', queueFillOf(this, value, options, 'DeviceBuffer.fillSync'))
    return this
  }

  /**
   * Queues a copy of the whole of `source`, which must be as long as this memory; use `slice` for parts
   * (`cuMemcpyHtoDAsync`, `cuMemcpyDtoDAsync`, `cuMemcpyPeerAsync`, `cudaMemcpyAsync`, `cudaMemcpyPeerAsync`). A host
   * array, page-locked or not, must stay as it is until the copy has ended, as `stream.synchronize()` tells: what
   * arrives of one that is changed or detached before is undefined. It is kept alive until then. Device memory may be
   * another device's, with or without peer access.
   * @throws TypeError for another dtype; RangeError for another length, or a source that overlaps this memory without
   * being the same; DisposedError, StatusError
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

  /** Like {@link copyFrom}, and blocks until the copy has ended. */
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
   * Queues a copy into host memory as long as this memory and resolves with it when the data is there.
   * @throws TypeError for an array of another type, RangeError for another length, DisposedError, StatusError.
   */
  copyTo<T extends CopyTarget<E>>(target: T, options?: QueueOptions): Promise<T> {
    return download(this, target, options, 'DeviceBuffer.copyTo')
  }

  /** Copies into host memory as long as this memory and blocks until the data is there. @throws as {@link copyTo} */
  copyToSync<T extends CopyTarget<E>>(target: T, options?: QueueOptions): T {
    downloadAndWait(this, target, options, 'DeviceBuffer.copyToSync')
    return target
  }

  /**
   * Resolves with the elements as they are when the stream gets there: in a fresh typed array, or as a list of structs.
   */
  toArray(options?: QueueOptions): Promise<ElementArrayOf<E>> {
    const { dtype } = this
    const array = arrayFor(dtype, this.length) as HostArrayOf<E>
    const copied: Promise<ArrayBufferView> = download(this, array, options, 'DeviceBuffer.toArray')
    return typeof dtype === 'string'
      ? (copied as Promise<ElementArrayOf<E>>)
      : copied.then((array) => elementsFrom(array, dtype))
  }

  /** Like {@link toArray}, and blocks until the stream gets there. */
  toArraySync(options?: QueueOptions): ElementArrayOf<E> {
    const array = arrayFor(this.dtype, this.length)
    downloadAndWait(this, array as HostArrayOf<E>, options, 'DeviceBuffer.toArraySync')
    return elementsFrom(array, this.dtype)
  }
}

// Functions, not private methods: those would make each buffer dearer.

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

/** The stream an operation is queued on; a TypeError for a stream where options are meant. */
function queueOf(memory: DeviceTransfers<ElementType>, options: QueueOptions | undefined, api: string): StreamQueue {
  return queueFor(memory.context, options === undefined ? undefined : streamIn(options, api), api)
}

/**
 * The address of memory that is used next, on a queue that waits for what is pending on it. Asked when all else is
 * known: a getter of the arguments may have disposed of the memory.
 */
function useBehind(memory: DeviceTransfers<ElementType>, queue: StreamQueue): bigint {
  const address = memory._use()
  if (memory._pending !== undefined) orderBehind(queue._handle, memory.context.handle, memory._pending)
  return address
}

/** As in `LaunchShape.set`: after the property was read, its keys are counted. */
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

import type { CUstream } from '@shoal/cuda-sys/driver'
import {
  type DType,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type StreamLike,
  type TypedArrayOf,
} from '@shoal/types'
import { requireOptions } from '../checks.js'
import type { Context } from '../context.js'
import { giveBackUnused, Resource } from '../lifetime.js'
import type { StreamObject } from '../stream/streamObject.js'
import { type ElementValue, elementBytes } from './elements.js'
import { arrayFor } from './hostArrays.js'
import { downloadNow, type HostCopyCalls, queueDownload, queueUpload, uploadNow } from './hostCopy.js'
import type { PinnedMemoryObject } from './pinnedMemory.js'
import { checkSource, checkTarget, requireWithin } from './typed.js'

/** Where an operation is queued. */
export interface QueueOptions {
  /** A stream of any package. Default: the default stream of the memory's device. */
  readonly stream?: StreamLike | undefined
}

/** What device memory can be filled from: a typed array, page-locked memory, or device memory of any device and package. */
export type CopySource<D extends DType> = TypedArrayOf<D> | MemoryLike

/** What device memory can be read into: a typed array or page-locked memory. */
export type CopyTarget<D extends DType> = TypedArrayOf<D> | PinnedMemoryObject<D>

/** What acts on device memory, by the functions of the driver or of the runtime. Each checks its status. */
export interface DeviceMemoryCalls {
  readonly host: HostCopyCalls
  /** The stream an operation of the context is queued on: the one named, else the default one. */
  streamFor(context: Context, stream: StreamLike | undefined): CUstream
  /** Queues a copy of device memory, of this or another device, or of page-locked memory. */
  copy(context: Context, stream: CUstream, to: bigint, from: MemoryRange): void
  /** Queues the writing of `count` copies of an element. */
  fill(context: Context, stream: CUstream, to: bigint, element: DataView, count: number): void
  /** A non-blocking stream that ends with the context. */
  makeHiddenStream(context: Context): StreamObject
}

/**
 * Typed memory of a device, or a view of a part of it. Work named with a stream is only queued; methods that end in
 * `Sync` block the thread; methods that return a promise wait without blocking it.
 */
export abstract class DeviceMemoryObject<D extends DType = DType> extends Resource implements MemoryLike {
  abstract readonly dtype: D
  /** Number of elements. */
  abstract readonly length: number
  abstract readonly byteLength: number
  /** The primary context of its device. */
  abstract readonly context: Context
  /** What the memory protocol gave. No field: making one for each object would take as long as the call of the driver. */
  declare private range: MemoryRange | undefined
  /** What the object that a view looks into has, as the view was last found to lie within it. No field, as above. */
  declare private surroundings: MemoryRange | undefined

  /** @internal What acts on it. */
  abstract get _calls(): DeviceMemoryCalls

  /** @internal The address, or DisposedError. */
  abstract _use(): bigint

  /** @internal What {@link _use} refuses, for memory that was used before. */
  protected abstract requireStillThere(): void

  /** The device address of the first element, a `CUdeviceptr`; 0n when there is none. @throws DisposedError */
  get address(): bigint {
    return this._use()
  }

  /** Queues the writing of one value to every element (`cuMemsetD8Async` and its kin, `cudaMemsetAsync`). */
  fill(value: ElementValue<D>, options: QueueOptions = {}): this {
    const address = this._use()
    const stream = queueFor(this, options)
    this._calls.fill(this.context, stream, address, elementBytes(this.dtype, value, 'value'), this.length)
    return this
  }

  /** Writes one value to every element and blocks until it is done. */
  fillSync(value: ElementValue<D>, options: QueueOptions = {}): this {
    this.fill(value, options)
    finish(this, options)
    return this
  }

  /**
   * Queues a copy of the whole of `source`, which must be as long as this memory; use `slice` for parts
   * (`cuMemcpyHtoDAsync`, `cuMemcpyPeerAsync` and their kin, `cudaMemcpyAsync`, `cudaMemcpyPeerAsync`). Of an ordinary
   * array the present contents arrive, whatever becomes of it; a page-locked one must stay unchanged until the copy ends
   * and is kept alive until then. Device memory may be another device's, with or without peer access.
   * @throws TypeError for another dtype, RangeError for another length, DisposedError.
   */
  copyFrom(source: CopySource<D>, options: QueueOptions = {}): this {
    const address = this._use()
    const { context, _calls: calls } = this
    const stream = queueFor(this, options)
    const from = checkSource(source, this)
    if (ArrayBuffer.isView(from)) queueUpload(calls.host, context, stream, address, from)
    else calls.copy(context, stream, address, from)
    return this
  }

  /** Like {@link copyFrom}, and blocks until the copy has ended. */
  copyFromSync(source: CopySource<D>, options: QueueOptions = {}): this {
    const address = this._use()
    const { context, _calls: calls } = this
    const stream = queueFor(this, options)
    const from = checkSource(source, this)
    if (ArrayBuffer.isView(from)) {
      uploadNow(calls.host, context, stream, address, from)
      return this
    }
    calls.copy(context, stream, address, from)
    finish(this, options)
    return this
  }

  /**
   * Queues a copy into host memory as long as this memory and resolves with it when the data is there.
   * @throws TypeError for an array of another type, RangeError for another length, DisposedError, StatusError.
   */
  copyTo<T extends CopyTarget<D>>(target: T, options: QueueOptions = {}): Promise<T> {
    try {
      const address = this._use()
      const stream = queueFor(this, options)
      return queueDownload(this._calls.host, this.context, stream, address, checkTarget(target, this), target)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Copies into host memory as long as this memory and blocks until the data is there. */
  copyToSync<T extends CopyTarget<D>>(target: T, options: QueueOptions = {}): T {
    const address = this._use()
    const stream = queueFor(this, options)
    downloadNow(this._calls.host, this.context, stream, address, checkTarget(target, this))
    return target
  }

  /** Resolves with the elements in a fresh typed array, as they are when the stream gets there. */
  toArray(options: QueueOptions = {}): Promise<TypedArrayOf<D>> {
    return this.copyTo(arrayFor(this.dtype, this.length) as TypedArrayOf<D>, options)
  }

  /** The elements in a fresh typed array; blocks until the stream gets there. */
  toArraySync(options: QueueOptions = {}): TypedArrayOf<D> {
    return this.copyToSync(arrayFor(this.dtype, this.length) as TypedArrayOf<D>, options)
  }

  get [memoryProtocol](): MemoryRange {
    const known = this.range
    if (known !== undefined) {
      this.requireStillThere()
      return known
    }
    const address = this._use()
    const { context } = this
    // Frozen: whoever checked it once may recognise it.
    this.range = Object.freeze({
      version: 0,
      address,
      byteLength: this.byteLength,
      deviceOrdinal: context.device.ordinal,
      context: context._handle,
      dtype: this.dtype,
      length: this.length,
    })
    return this.range
  }

  get [Symbol.toStringTag](): string {
    return this.kind
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const state = this.disposed ? ', disposed' : ''
    return `${this.kind}<${this.dtype}>(${this.length}) on device ${this.context.device.ordinal}${state}`
  }

  /** For a view: the object it looks into may have given its memory back, or part of it. @throws DisposedError, RangeError */
  protected requireWithin(source: MemoryLike, address: bigint): void {
    const range = source[memoryProtocol]
    if (range === this.surroundings) return
    requireWithin(range, address, this.byteLength)
    // What is frozen stays as it is.
    if (Object.isFrozen(range)) this.surroundings = range
  }

  /** Fills memory that is new with zeros; disposes of it on failure. */
  protected startWithZeros(): this {
    startWith(this, (stream) => {
      const { context, _calls: calls } = this
      calls.fill(context, stream, this._use(), new DataView(new ArrayBuffer(1)), this.byteLength)
      calls.host.synchronize(context, stream)
    })
    return this
  }

  /** The same with the elements of an array. */
  protected startWith(array: ArrayBufferView): this {
    startWith(this, (stream) => uploadNow(this._calls.host, this.context, stream, this._use(), array))
    return this
  }
}

// These are no private methods: V8 would note on each object that it may use them, and making one would take longer.

/** The stream an operation is queued on; a TypeError for a stream where options are meant. */
function queueFor(memory: DeviceMemoryObject, options: QueueOptions): CUstream {
  requireOptions(options, 'options', '{ stream }')
  return memory._calls.streamFor(memory.context, options.stream)
}

function finish(memory: DeviceMemoryObject, options: QueueOptions): void {
  memory._calls.host.synchronize(memory.context, queueFor(memory, options))
}

/** Writes to memory that nobody else knows yet, and waits for nobody's work but this. Disposes of it on failure. */
function startWith(memory: DeviceMemoryObject, write: (stream: CUstream) => void): void {
  try {
    write(transferStream(memory.context, memory._calls).handle)
  } catch (error) {
    giveBackUnused('Memory of a device', () => memory.dispose())
    throw error
  }
}

const transferStreams = new WeakMap<Context, StreamObject>()

/** A stream of our own for memory nobody else knows yet, so that making it waits for nobody's work. */
function transferStream(context: Context, calls: DeviceMemoryCalls): StreamObject {
  let stream = transferStreams.get(context)
  if (stream === undefined) {
    stream = calls.makeHiddenStream(context)
    transferStreams.set(context, stream)
  }
  return stream
}

import type { CUstream } from '@shoal/cuda-sys/driver'
import { cuEventRecordWithFlags, cuStreamBatchMemOp } from '@shoal/cuda-sys/driver'
import { type BackgroundWork, callInContext, type NativeMemory } from '@shoal/ffi'
import {
  foreignThis,
  type MemoryLike,
  type OptionKeys,
  optionalBoolean,
  refuseForged,
  requireAddress,
  requireFunction,
  requireInstance,
  requireInteger,
  requireMade,
  requireOptions,
  requireSynchronous,
  requireSynchronousFunction,
  requireWaitOptions,
  type StreamArgument,
  type StreamHandle,
  type StreamLike,
  settledNow,
  streamProtocol,
  toStreamHandle,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import { afterCapture } from '../context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../context/context.js'
import { type EventLike, requireEventLike } from '../context/eventLike.js'
import { keepCaptured } from '../context/keptByCaptures.js'
import { Status } from '../errors.js'
import { Event, type EventUseOptions, isEvent, isExternal, isOver } from '../event/event.js'
import { afterUseOfStream } from '../inUse.js'
import { forgetLeak, Resource, releaseAfterFailure, watchForLeak } from '../lifetime.js'
import { scratch } from '../native.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'
import { isStreamDone } from '../waiting/shortWait.js'
import { streamStatus } from '../waiting/streamStatus.js'
import { type StreamQueue, UnmarkedWork } from '../waiting/unmarkedWork.js'
import { settle } from '../waiting/wait.js'
import { readAttributes, type StreamAttributes, type StreamAttributeValues, setAttributes } from './attributes.js'
import { boundStreamOf, missingStreams, noteStream, withBoundStream } from './boundStream.js'
import { refuseForeignEvent, refuseForeignStream } from './foreign.js'
import { queueHostFunction } from './hostFunction.js'
import { encodeOperations, type MemoryOperation, type WordCondition } from './memoryOperations.js'
import { createHandle, destroyHandle, isDisposed } from './streamHandle.js'

/** `CU_STREAM_NON_BLOCKING`, `cudaStreamNonBlocking` */
const nonBlockingFlag = 1
/** `CU_EVENT_RECORD_EXTERNAL`, `CU_EVENT_WAIT_EXTERNAL` */
const externalFlag = 1
/** Handles 0, 1 and 2 are the default streams. */
const lastDefaultStream = 2n

const noContext: U64Halves = { low: 0, high: 0 }

/** Options of a new stream. */
export interface StreamOptions {
  /** If true, the stream does not synchronize with the legacy default stream. Default: false, as in CUDA. */
  readonly nonBlocking?: boolean | undefined
  /** Priority within `context.streamPriorityRange`. A lower number runs first. Default: 0. */
  readonly priority?: number | undefined
}

export const streamKeys: OptionKeys<StreamOptions> = { nonBlocking: true, priority: true }

/**
 * A queue of work on a device. Its work runs in order; the work of other streams can run at the same time.
 *
 * @example
 * using stream = device.createStream()
 * kernel.launch({ grid: 64, block: 256, stream }, x, y) // returns immediately
 * await stream.synchronize() // never blocks the event loop
 */
export class Stream extends Resource implements StreamLike {
  protected readonly kind = 'Stream'
  /** The context of the stream. */
  readonly context: Context
  /** @internal */
  readonly _handle: CUstream
  /** @internal The handle as two halves, for calls without a bigint. */
  readonly _halves: U64Halves
  /**
   * @internal The context that calls with this stream need. Each context has its own default streams. libcuda knows the
   * context of other streams and needs no current one; libcudart would make a context current and leave it current.
   */
  readonly _callContext: U64Halves
  /** @internal Set for a stream that only this object destroys. */
  readonly _unmarked: UnmarkedWork | undefined
  readonly #isOwned: boolean
  /** The object that owns the stream, if this object borrows it. */
  readonly #source: StreamArgument | undefined
  #identity: StreamHandle | undefined

  private constructor(context: Context, handle: CUstream, isOwned: boolean, source?: StreamArgument) {
    requireMade(handle, 'Stream', 'Device.createStream or Stream.create')
    super()
    this.context = context
    this._handle = handle
    this._halves = halvesOf(handle)
    this._callContext = context._cuda.name === 'driver' && handle > lastDefaultStream ? noContext : context._halves
    this._unmarked = isOwned ? new UnmarkedWork(context, this) : undefined
    this.#isOwned = isOwned
    this.#source = source
    if (!isOwned) return
    context._addChild()
    watchForLeak(this, `A Stream of device ${context.device.ordinal}`, () => {
      destroyHandle(context, handle)
      return 'it is destroyed when its work has ended'
    })
  }

  /**
   * Creates a stream (`cuStreamCreateWithPriority`, `cudaStreamCreateWithPriority`).
   * @throws RangeError for a priority that the device does not have; TypeError, StatusError
   */
  static create(owner: DeviceOrContext, options: StreamOptions = {}): Stream {
    return Stream._create(owner, options, 'Stream.create')
  }

  /** @internal Creates a stream. Errors name the function `api`. */
  static _create(owner: DeviceOrContext, options: StreamOptions, api: string): Stream {
    const context = contextOf(owner, api)
    requireOptions(options, api, streamKeys)
    const bits = optionalBoolean(options.nonBlocking, api, 'nonBlocking', false) ? nonBlockingFlag : 0
    let priority = 0
    if (options.priority !== undefined) {
      const { greatest, least } = context.streamPriorityRange
      priority = requireInteger(options.priority, api, 'priority', greatest, least)
    }
    const handle = createHandle(context, bits, priority)
    noteStream(context._handle, bits !== 0)
    return new Stream(context, handle, true)
  }

  /** Wraps a stream of another owner, who destroys it. `0n` is the default stream of the current stream mode. */
  static borrow(owner: DeviceOrContext, handle: bigint): Stream {
    const api = 'Stream.borrow'
    const context = contextOf(owner, api)
    requireAddress(handle, api, 'handle')
    const { handle: checked } = toStreamHandle(handle === 0n ? null : handle)
    return new Stream(context, checked as CUstream, false)
  }

  /**
   * Wraps a stream of another package or library. Both objects have the same handle; the other object keeps owning it.
   * @throws TypeError for other values and streams of another context; DisposedError
   */
  static from(owner: DeviceOrContext, stream: StreamArgument): Stream {
    const api = 'Stream.from'
    const context = contextOf(owner, api)
    // undefined would mean the default stream.
    if (stream === undefined) throw wrongType(api, 'stream', 'a stream', stream)
    if (isStream(stream) && stream.context === context) {
      stream._requireUsable()
      return stream
    }
    return new Stream(context, streamFor(context, stream, api), false, stream)
  }

  /** Takes ownership of a stream: dispose() destroys it. @throws RangeError for a default stream */
  static adopt(owner: DeviceOrContext, handle: bigint): Stream {
    const api = 'Stream.adopt'
    const context = contextOf(owner, api)
    if (requireAddress(handle, api, 'handle') <= lastDefaultStream) {
      throw new RangeError(`${api}: handle must be the handle of a created stream, not of a default stream (${handle})`)
    }
    return new Stream(context, handle as CUstream, true)
  }

  /** @internal Takes ownership of a stream that is usable while `owner` is. */
  static _adoptFrom(context: Context, handle: CUstream, owner: StreamLike): Stream {
    return new Stream(context, handle, true, owner)
  }

  /** @internal Creates a non-blocking stream that belongs to its context and ends with it. */
  static _createHidden(context: Context): Stream {
    const handle = createHandle(context, nonBlockingFlag, 0)
    let isThere = true
    context._beforeClose((reason) => {
      if (isThere && reason !== 'reset') context._release('streamDestroy', handle)
      isThere = false
    })
    return new Stream(context, handle, false)
  }

  /**
   * Runs `fn` with this stream as the default for work of its context, in every package. Scopes nest, and each device
   * has its own scope. `fn` must be synchronous, because code after an `await` would run outside the scope.
   * @throws TypeError when `fn` returns a promise; DisposedError; errors of `fn`
   *
   * @example
   * stream.use(() => {
   *   x.copyFrom(samples)
   *   kernel.launch({ grid: 64, block: 256 }, x, y)
   * })
   */
  use<T>(fn: () => T): T {
    requireFunction(fn, 'Stream.use', 'fn')
    this._requireUsable()
    return requireSynchronous(withBoundStream(this, fn), 'Stream.use')
  }

  /** The `CUstream`, which is also the `cudaStream_t`. @throws DisposedError after dispose() */
  get handle(): CUstream {
    this._requireUsable()
    return this._handle
  }

  /** The device of the stream. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** Unique number of the stream in this process (`cuStreamGetId`, `cudaStreamGetId`). */
  get id(): bigint {
    return this.#ask('streamGetId').u64[0] as bigint
  }

  /** Whether the stream ignores the legacy default stream (`cuStreamGetFlags`, `cudaStreamGetFlags`). */
  get nonBlocking(): boolean {
    return ((this.#ask('streamGetFlags').u32[0] as number) & nonBlockingFlag) !== 0
  }

  /** Priority; a lower number runs first (`cuStreamGetPriority`, `cudaStreamGetPriority`). */
  get priority(): number {
    return this.#ask('streamGetPriority').i32[0] as number
  }

  /** Attributes for all kernels of the stream (`cuStreamGetAttribute`, `cudaStreamGetAttribute`). */
  get attributes(): StreamAttributeValues {
    return readAttributes(this.context, this.handle)
  }

  /**
   * Sets the given attributes (`cuStreamSetAttribute`, `cudaStreamSetAttribute`).
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  setAttributes(attributes: StreamAttributes): this {
    setAttributes(this.context, this.handle, attributes, 'Stream.setAttributes')
    return this
  }

  /** Copies all attributes of another stream (`cuStreamCopyAttributes`, `cudaStreamCopyAttributes`). */
  copyAttributes(from: StreamArgument): this {
    const { context, handle } = this
    if (from === undefined) throw wrongType('Stream.copyAttributes', 'from', 'a stream', from)
    context._call('streamCopyAttributes', handle, streamFor(context, from, 'Stream.copyAttributes'))
    return this
  }

  /**
   * Resolves with the stream when all work queued so far completes. Does not block the thread.
   * @throws StatusError when the context failed; AbortedError, TimeoutError
   */
  async synchronize(options?: WaitOptions): Promise<this> {
    const api = 'Stream.synchronize'
    const wait = requireWaitOptions(options, api)
    const { handle, context } = this
    if (isStreamDone(context, handle)) return settledNow(this)
    const background: BackgroundWork = {}
    return settle(context, streamStatus(context, this, background), this, wait, api, background)
  }

  /** Blocks the thread until all work of the stream completes (`cuStreamSynchronize`, `cudaStreamSynchronize`). */
  synchronizeSync(): this {
    this.context._call('streamSynchronize', this.handle)
    return this
  }

  /** Whether all work of the stream is complete (`cuStreamQuery`, `cudaStreamQuery`). */
  query(): boolean {
    const { handle, context } = this
    callInContext(context._handle)
    return isOver(context, context._cuda.calls.streamQuery(handle), 'streamQuery')
  }

  /**
   * Records an event after the stream's current work: the given event, or a new one without timing that needs no
   * dispose() (`cuEventRecord`, `cudaEventRecord`; `cuEventRecordWithFlags` for an external event).
   * @throws TypeError for an event of another context; DisposedError, StatusError
   */
  record(): Event
  record<E extends EventLike>(event: E, options?: EventUseOptions): E
  record(given?: EventLike, options?: EventUseOptions): EventLike {
    // Read this first: a getter of the options may dispose of the stream.
    const external = options !== undefined && isExternal(options, 'Stream.record')
    this._requireUsable()
    const { context } = this
    const event = given === undefined ? Event._createMark(context) : given
    if (!isEvent(event)) requireEventLike(event, 'Stream.record')
    if (event.context._handle !== context._handle) refuseForeignEvent(event, context)
    const { handle } = event
    if (external) {
      context._callDriver('cuEventRecordWithFlags', () => cuEventRecordWithFlags(handle, this._handle, externalFlag))
      keepCaptured(context._handle, this._handle, [], new Map([[event, () => void event.handle]]))
      return event
    }
    callInContext(context._handle)
    const status: number = context._cuda.calls.eventRecord(handle, this._handle)
    if (status !== Status.success) {
      if (given === undefined) releaseAfterFailure('An Event', () => (event as Event).dispose())
      throw context._error(status, 'eventRecord')
    }
    return event
  }

  /**
   * Makes later work wait for an event of any device and either package (`cuStreamWaitEvent`, `cudaStreamWaitEvent`).
   * @throws TypeError for a value that is not an event; DisposedError, StatusError
   */
  waitEvent(event: EventLike, options?: EventUseOptions): this {
    const flags = options !== undefined && isExternal(options, 'Stream.waitEvent') ? externalFlag : 0
    const { handle, context } = this
    const mark = requireEventLike(event, 'Stream.waitEvent').handle
    callInContext(context._handle)
    const status: number = context._cuda.calls.streamWaitEvent(handle, mark, flags)
    if (status !== Status.success) throw context._error(status, 'streamWaitEvent')
    if (flags !== 0) keepCaptured(context._handle, handle, [], new Map([[event, () => void event.handle]]))
    return this
  }

  /**
   * Writes words of memory and waits for words, in the order of the list and of the stream (`cuStreamBatchMemOp`). A
   * list has at most 256 operations. A wait ends when any writer changes the word: a kernel, a copy, another stream,
   * process or peer GPU.
   * @throws TypeError, RangeError; DisposedError, StatusError
   *
   * @example
   * consumer.memoryOperations([{ operation: 'wait', memory: flag, value: 1 }])
   * producer.memoryOperations([{ operation: 'write', memory: flag, value: 1 }])
   */
  memoryOperations(operations: readonly MemoryOperation[]): this {
    return this.#operate(operations, 'Stream.memoryOperations')
  }

  /** Writes a word of 4 or 8 bytes (`cuStreamBatchMemOp`). @throws as {@link memoryOperations} */
  writeValue(memory: MemoryLike, value: number | bigint): this {
    return this.#operate([{ operation: 'write', memory, value }], 'Stream.writeValue', true)
  }

  /**
   * Makes later work wait until a word of 4 or 8 bytes meets the condition (`cuStreamBatchMemOp`). @throws as
   * {@link memoryOperations}
   */
  waitValue(memory: MemoryLike, value: number | bigint, condition: WordCondition = 'geq'): this {
    return this.#operate([{ operation: 'wait', memory, value, condition }], 'Stream.waitValue', true)
  }

  #operate(operations: readonly MemoryOperation[], api: string, isOne = false): this {
    const { handle, context } = this
    const { memory, count, needs } = encodeOperations(operations, api, isOne)
    context._callDriver('cuStreamBatchMemOp', () => cuStreamBatchMemOp(handle, count, memory, 0))
    keepCaptured(context._handle, handle, [...needs.keys()])
    return this
  }

  /**
   * Calls `fn` on this thread after all earlier work of the stream (`cuLaunchHostFunc`, `cudaLaunchHostFunc`). Later
   * work does not wait for `fn`. `fn` must be synchronous, and sees the `AsyncLocalStorage` of this call. The promise
   * resolves when `fn` returns and rejects with an error of `fn`. If the context failed, it rejects with a StatusError
   * and `fn` is not called. While the stream is being captured, the promise resolves immediately. Each launch of the
   * graph then calls `fn`, and an error of `fn` is an uncaught exception.
   * @throws (rejects) TypeError for an async function, or when `fn` returns a promise
   */
  async hostFunction(fn: () => void): Promise<void> {
    const api = 'Stream.hostFunction'
    requireSynchronousFunction(fn, api, 'fn')
    return queueHostFunction(this, fn, api)
  }

  get [streamProtocol](): StreamHandle {
    const { handle } = this
    this.#identity ??= Object.freeze({
      version: 0,
      handle,
      deviceOrdinal: this.context.device.ordinal,
      context: this.context._handle,
    })
    return this.#identity
  }

  /** Waits for the stream's work, then destroys the stream. `await using` therefore leaves no work behind. */
  override async [Symbol.asyncDispose](): Promise<void> {
    if (this.disposed) return
    try {
      // If the owner or the context has ended the stream, no work is left to wait for.
      if (!this._isGone && !this.context.disposed) await this.synchronize()
    } finally {
      this.dispose()
    }
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, handle: this._handle }
  }

  /** @internal */
  _requireUsable(): void {
    if (!(#source in this)) throw foreignThis(this, 'Stream')
    this._requireAlive()
    // Throws if the owning object was disposed of.
    if (this.#source !== undefined) toStreamHandle(this.#source)
    this.context._requireAlive()
  }

  /** @internal Whether this object or the stream's owner was disposed of. Its handle may be another stream's then. */
  get _isGone(): boolean {
    return this._disposed || (this.#source !== undefined && isDisposed(this.#source))
  }

  protected release(): void {
    if (!this.#isOwned) return
    forgetLeak(this)
    afterUseOfStream(this._handle, () =>
      afterCapture('A Stream', () => {
        // The stream cannot be queried after its destruction.
        this._unmarked?.mark()
        destroyHandle(this.context, this._handle)
      }),
    )
  }

  #ask(call: 'streamGetId' | 'streamGetFlags' | 'streamGetPriority'): NativeMemory {
    const out = scratch()
    this.context._call(call, this.handle, out)
    return out
  }
}

/** Whether a value is a stream of this package. A revoked proxy is not, and reading it would throw. */
export function isStream(value: unknown): value is Stream {
  try {
    return value instanceof Stream
  } catch {
    return false
  }
}

/**
 * Returns the stream handle for an operation of `context`: the given stream, else the innermost `Stream.use`, else the
 * default stream.
 * @throws TypeError for a stream of another context, DisposedError for a disposed one
 */
export function streamFor(context: Context, stream: StreamArgument | undefined, api: string): CUstream {
  if (stream === undefined) {
    const bound = missingStreams.areDefault ? undefined : boundStreamOf(context._handle, api)
    return streamFor(context, bound ?? null, api)
  }
  refuseForged(stream, api, 'stream')
  if (isStream(stream)) {
    stream._requireUsable()
    if (stream.context !== context && stream.context._handle !== context._handle) {
      refuseForeignStream(stream.context.device.ordinal, context, api)
    }
    return stream._handle
  }
  if (typeof stream !== 'object' && typeof stream !== 'bigint') throw wrongType(api, 'stream', 'a stream', stream)
  const { handle, deviceOrdinal, context: owner } = toStreamHandle(stream, api)
  if (owner !== 0n && owner !== context._handle) refuseForeignStream(deviceOrdinal, context, api)
  return handle as CUstream
}

let defaultQueue: StreamQueue | undefined

/** {@link streamFor} with the handle as two halves. */
export function streamHalvesFor(context: Context, stream: StreamArgument | undefined, api: string): U64Halves {
  return queueFor(context, stream, api)._halves
}

/** {@link streamFor} with both forms of the handle. Short, so that V8 inlines it into a launch. */
export function queueFor(context: Context, stream: StreamArgument | undefined, api: string): StreamQueue {
  if (!isStream(stream) || stream.context !== context) return otherQueueFor(context, stream, api)
  stream._requireUsable()
  return stream
}

function otherQueueFor(context: Context, stream: StreamArgument | undefined, api: string): StreamQueue {
  if (stream === undefined) {
    if (missingStreams.areDefault && defaultQueue !== undefined) return defaultQueue
    const bound = missingStreams.areDefault ? undefined : boundStreamOf(context._handle, api)
    return queueFor(context, bound ?? null, api)
  }
  if (stream === null && defaultQueue !== undefined) return defaultQueue
  const _handle = streamFor(context, stream, api)
  const queue = { _handle, _halves: halvesOf(_handle), _unmarked: undefined }
  if (stream === null) defaultQueue = queue
  return queue
}

/** Returns a checked stream of this package. @throws TypeError */
export function requireStream(stream: unknown, api: string, name = 'stream'): Stream {
  return requireInstance(stream, api, name, Stream, 'a Stream; Stream.from() takes those of others') as Stream
}

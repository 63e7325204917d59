import {
  checkWaitOptions,
  describeValue,
  driverError,
  type EventLike,
  forgetLeak,
  optionalBoolean,
  Resource,
  requireEventLike,
  requireInteger,
  requireOptions,
  Status,
  scratch,
  settle,
  streamStatus,
  type WaitOptions,
  type Words,
  watchForLeak,
  wordsOf,
} from '@shoal/cuda-base'
import {
  type CUstream,
  cuLaunchHostFunc,
  cuStreamCreateWithPriority,
  cuStreamDestroy,
  cuStreamGetFlags,
  cuStreamGetId,
  cuStreamGetPriority,
  cuStreamQuery,
  cuStreamSynchronize,
  cuStreamWaitEvent,
} from '@shoal/cuda-sys/driver'
import { type BackgroundWork, callInContext, createHostCallback } from '@shoal/ffi'
import { type StreamHandle, type StreamLike, streamProtocol, toStreamHandle } from '@shoal/types'
import { type Context, requireContext } from './context.js'
import { Event } from './event.js'

const nonBlockingFlag = 1
/** 0, 1 and 2 are the default streams. */
const lastDefaultStream = 2n
const noContext: Words = { low: 0, high: 0 }
const maximumHandle = 2n ** 64n - 1n

/** How a stream is made. */
export interface StreamOptions {
  /** Does not wait for the legacy default stream, nor it for this one. Default: false, as in CUDA. */
  readonly nonBlocking?: boolean | undefined
  /** Within `context.streamPriorityRange`; a lower number goes first. Default: 0. */
  readonly priority?: number | undefined
}

/** A queue of work on a device. Made by `device.createStream()`. */
export class Stream extends Resource implements StreamLike {
  protected readonly kind = 'Stream'
  readonly context: Context
  /** @internal */
  readonly _handle: CUstream
  /** @internal The handle in two halves, for calls without a bigint. */
  readonly _words: Words
  /**
   * @internal The context that calls with this stream need: the default streams exist in each, any other stream knows its
   * own, and the driver then asks for no current one.
   */
  readonly _callContext: Words
  readonly #isOwned: boolean
  #identity: StreamHandle | undefined
  /** The object that has the stream, when this one borrows it. */
  #source: StreamLike | undefined

  private constructor(context: Context, handle: CUstream, isOwned: boolean) {
    super()
    this.context = context
    this._handle = handle
    this._words = wordsOf(handle)
    this._callContext = handle > lastDefaultStream ? noContext : context._words
    this.#isOwned = isOwned
    if (!isOwned) return
    context._addChild()
    watchForLeak(this, `A Stream of device ${context.device.ordinal}`, () => {
      try {
        context._release('cuStreamDestroy', () => cuStreamDestroy(handle))
      } finally {
        context._removeChild()
      }
      return 'it is destroyed when its work has ended'
    })
  }

  /** Makes a stream in a context (`cuStreamCreateWithPriority`). */
  static create(context: Context, options: StreamOptions = {}): Stream {
    requireContext(context)
    requireOptions(options, 'options', '{ nonBlocking: true }')
    const bits = optionalBoolean(options.nonBlocking, 'nonBlocking', false) ? nonBlockingFlag : 0
    let priority = 0
    if (options.priority !== undefined) {
      const { greatest, least } = context.streamPriorityRange
      priority = requireInteger(options.priority, 'priority', greatest, least)
    }
    const out = scratch()
    context._call('cuStreamCreateWithPriority', () => cuStreamCreateWithPriority(out, bits, priority))
    return new Stream(context, out.u64[0] as CUstream, true)
  }

  /** A stream somebody else made and destroys; `0n` is the default stream of the current stream mode. */
  static borrow(context: Context, handle: bigint): Stream {
    requireContext(context)
    if (typeof handle !== 'bigint') throw new TypeError(`handle must be a bigint, not ${describeValue(handle)}`)
    if (handle < 0n || handle > maximumHandle) throw new RangeError(`handle must fit 64 bits, not ${handle}`)
    const { handle: checked } = toStreamHandle(handle === 0n ? null : handle)
    return new Stream(context, checked as CUstream, false)
  }

  /**
   * A stream of another package, such as `@shoal/runtime`, as one of this package: the same handle, and the other
   * object keeps it. @throws TypeError for what is no stream, or one of another context.
   */
  static from(context: Context, stream: StreamLike): Stream {
    if (stream instanceof Stream) return stream
    requireContext(context)
    const borrowed = new Stream(context, streamFor(context, stream), false)
    borrowed.#source = stream
    return borrowed
  }

  /** Takes over a stream somebody else made: dispose() destroys it. */
  static adopt(context: Context, handle: bigint): Stream {
    requireContext(context)
    requireOwnHandle(handle)
    return new Stream(context, handle as CUstream, true)
  }

  /** @internal A non-blocking stream that belongs to its context and ends with it. */
  static _createHidden(context: Context): Stream {
    const out = scratch()
    context._call('cuStreamCreateWithPriority', () => cuStreamCreateWithPriority(out, nonBlockingFlag, 0))
    const handle = out.u64[0] as CUstream
    let isThere = true
    context._beforeClose((reason) => {
      if (isThere && reason !== 'reset') context._release('cuStreamDestroy', () => cuStreamDestroy(handle))
      isThere = false
    })
    return new Stream(context, handle, false)
  }

  /** The `CUstream`. @throws DisposedError after dispose(). */
  get handle(): CUstream {
    this._requireUsable()
    return this._handle
  }

  get device(): Context['device'] {
    return this.context.device
  }

  /** A number no other stream of the process has (`cuStreamGetId`). */
  get id(): bigint {
    const out = scratch()
    const handle = this.handle
    this.context._call('cuStreamGetId', () => cuStreamGetId(handle, out))
    return out.u64[0] as bigint
  }

  /** Whether it ignores the legacy default stream (`cuStreamGetFlags`). */
  get nonBlocking(): boolean {
    const out = scratch()
    const handle = this.handle
    this.context._call('cuStreamGetFlags', () => cuStreamGetFlags(handle, out))
    return ((out.u32[0] as number) & nonBlockingFlag) !== 0
  }

  /** Its priority; a lower number goes first (`cuStreamGetPriority`). */
  get priority(): number {
    const out = scratch()
    const handle = this.handle
    this.context._call('cuStreamGetPriority', () => cuStreamGetPriority(handle, out))
    return out.i32[0] as number
  }

  /**
   * Resolves with the stream when all work queued until now has ended. The thread stays free.
   * @throws StatusError when the context failed, AbortedError, TimeoutError.
   */
  async synchronize(options: WaitOptions = {}): Promise<this> {
    checkWaitOptions(options, 'Stream.synchronize')
    const background: BackgroundWork = {}
    const work = streamStatus(this.context, this.handle, background)
    return settle(work, this, options, 'Stream.synchronize', background)
  }

  /** Blocks the thread until all work of the stream has ended (`cuStreamSynchronize`). */
  synchronizeSync(): this {
    this._requireUsable()
    callInContext(this.context._handle)
    const status: number = cuStreamSynchronize(this._handle)
    if (status !== Status.success) throw driverError(status, 'cuStreamSynchronize')
    return this
  }

  /** Whether all work of the stream has ended (`cuStreamQuery`). */
  query(): boolean {
    this._requireUsable()
    callInContext(this.context._handle)
    const status: number = cuStreamQuery(this._handle)
    if (status === Status.notReady) return false
    if (status !== Status.success) throw driverError(status, 'cuStreamQuery')
    return true
  }

  /** Makes work queued from now on wait for an event, of any device and of `@shoal/runtime` too (`cuStreamWaitEvent`). */
  waitEvent(event: EventLike): this {
    const [handle, mark] = [this.handle, requireEventLike(event).handle]
    this.context._call('cuStreamWaitEvent', () => cuStreamWaitEvent(handle, mark, 0))
    return this
  }

  /**
   * Marks the end of what is queued so far, in the event given or in a new one without timing, which may be dropped
   * without dispose() (`cuEventRecord`).
   */
  record(event: Event = Event._createMark(this.context)): Event {
    if (!(event instanceof Event)) throw new TypeError(`event must be an Event, not ${describeValue(event)}`)
    this._requireUsable()
    if (event.context._handle !== this.context._handle) {
      throw new TypeError(
        `an event of device ${event.context.device.ordinal} cannot be recorded on a stream of device ` +
          `${this.context.device.ordinal}`,
      )
    }
    event._record(this._handle)
    return event
  }

  /**
   * Calls `fn` on this thread after all earlier work of the stream; work queued later does not wait for it. The
   * promise resolves when `fn` returned, rejects with what it threw, or with a StatusError when the context failed, in
   * which case `fn` is not called (`cuLaunchHostFunc`).
   */
  async hostFunction(fn: () => void): Promise<void> {
    if (typeof fn !== 'function') throw new TypeError(`fn must be a function, not ${describeValue(fn)}`)
    const handle = this.handle
    const { promise, resolve, reject } = deferred<void>()
    const callback = createHostCallback(() => {
      callback.dispose()
      try {
        fn()
        resolve()
      } catch (error) {
        reject(error)
      }
    })
    try {
      this.context._call('cuLaunchHostFunc', () =>
        cuLaunchHostFunc(handle, callback.functionAddress, callback.userData),
      )
    } catch (error) {
      callback.dispose()
      throw error
    }
    // The driver forgets host functions once the context has an error; the event behind this one tells.
    streamStatus(this.context, handle).then((status) => {
      if (status === Status.success) return
      callback.dispose()
      reject(driverError(status, 'cuLaunchHostFunc'))
    }, reject)
    return promise
  }

  get [streamProtocol](): StreamHandle {
    const handle = this.handle
    this.#identity ??= Object.freeze({
      version: 0,
      handle,
      device: this.context.device.ordinal,
      context: this.context._handle,
    })
    return this.#identity
  }

  get [Symbol.toStringTag](): string {
    return 'Stream'
  }

  /** Waits for the work and then destroys the stream, so that `await using` leaves nothing behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.disposed) return
    try {
      await this.synchronize()
    } finally {
      this.dispose()
    }
  }

  /** @internal */
  _requireUsable(): void {
    this._requireAlive()
    // Throws when the object that has the stream was disposed of.
    if (this.#source !== undefined) toStreamHandle(this.#source)
    this.context._requireAlive()
  }

  protected release(): void {
    if (!this.#isOwned) return
    forgetLeak(this)
    // Queued work still ends: the driver frees the stream after it.
    try {
      this.context._release('cuStreamDestroy', () => cuStreamDestroy(this._handle))
    } finally {
      this.context._removeChild()
    }
  }
}

/**
 * The handle of the stream where an operation of `context` goes: the one named, else the default stream.
 * @throws TypeError when the stream belongs to another context, DisposedError when it is gone.
 */
export function streamFor(context: Context, stream: StreamLike | undefined): CUstream {
  if (stream === undefined) return defaultHandle()
  if (stream instanceof Stream) {
    stream._requireUsable()
    if (stream.context !== context && stream.context._handle !== context._handle) {
      refuseForeign(stream.context.device.ordinal, context)
    }
    return stream._handle
  }
  const { handle, device, context: owner } = toStreamHandle(stream)
  if (owner !== 0n && owner !== context._handle) refuseForeign(device, context)
  return handle as CUstream
}

let defaultStream: CUstream | undefined

function defaultHandle(): CUstream {
  defaultStream ??= toStreamHandle(null).handle as CUstream
  return defaultStream
}

function refuseForeign(device: number, context: Context): never {
  const where = device === context.device.ordinal ? 'another context' : `device ${device}`
  throw new TypeError(`the stream belongs to ${where}, the operation to device ${context.device.ordinal}`)
}

function requireOwnHandle(handle: bigint): void {
  if (typeof handle !== 'bigint') throw new TypeError(`handle must be a bigint, not ${describeValue(handle)}`)
  if (handle < 0n || handle > maximumHandle) throw new RangeError(`handle must fit 64 bits, not ${handle}`)
  // 1 and 2 name the two default streams, which nobody may destroy.
  if (handle <= 2n) throw new RangeError('a default stream cannot be taken over')
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

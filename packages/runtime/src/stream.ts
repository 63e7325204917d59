import {
  type Context,
  checkWaitOptions,
  describeValue,
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
  watchForLeak,
} from '@shoal/cuda-base'
import {
  cudaLaunchHostFunc,
  type cudaStream_t,
  cudaStreamCreateWithPriority,
  cudaStreamDestroy,
  cudaStreamGetFlags,
  cudaStreamGetId,
  cudaStreamGetPriority,
  cudaStreamQuery,
  cudaStreamSynchronize,
  cudaStreamWaitEvent,
} from '@shoal/cuda-sys/runtime'
import { type BackgroundWork, callInContext, createHostCallback } from '@shoal/ffi'
import { type DeviceLike, type StreamHandle, type StreamLike, streamProtocol, toStreamHandle } from '@shoal/types'
import { deviceOrCurrent } from './currentDevice.js'
import type { Device } from './device.js'
import { runtimeErrors } from './errors.js'
import { Event, isOver, recordEvent } from './event.js'
import { callOn, releaseOn } from './start.js'

const nonBlockingFlag = 1
const maximumHandle = 2n ** 64n - 1n

/** How a stream is made. */
export interface StreamOptions {
  /** Does not wait for the legacy default stream, nor it for this one. Default: false, as in CUDA. */
  readonly nonBlocking?: boolean | undefined
  /** Within `device.streamPriorityRange`; a lower number goes first. Default: 0. */
  readonly priority?: number | undefined
  /** Default: the current device. */
  readonly device?: DeviceLike | number | undefined
}

/** A queue of work on a device. */
export class Stream extends Resource implements StreamLike {
  protected readonly kind = 'Stream'
  readonly context: Context
  /** @internal */
  readonly _handle: cudaStream_t
  readonly #isOwned: boolean
  /** The object that has the stream, when this one borrows it. */
  readonly #source: StreamLike | undefined
  #identity: StreamHandle | undefined

  private constructor(context: Context, handle: cudaStream_t, isOwned: boolean, source?: StreamLike) {
    super()
    this.context = context
    this._handle = handle
    this.#isOwned = isOwned
    this.#source = source
    if (!isOwned) return
    context._addChild()
    watchForLeak(this, `A Stream of device ${context.device.ordinal}`, () => {
      try {
        releaseOn(context, 'cudaStreamDestroy', () => cudaStreamDestroy(handle))
      } finally {
        context._removeChild()
      }
      return 'it is destroyed when its work has ended'
    })
  }

  /** Makes a stream on the current device, or the one named (`cudaStreamCreateWithPriority`). */
  static create(options: StreamOptions = {}): Stream {
    requireOptions(options, 'options', '{ nonBlocking: true }')
    const bits = optionalBoolean(options.nonBlocking, 'nonBlocking', false) ? nonBlockingFlag : 0
    const device = deviceOrCurrent(options.device)
    let priority = 0
    if (options.priority !== undefined) {
      const { greatest, least } = device.streamPriorityRange
      priority = requireInteger(options.priority, 'priority', greatest, least)
    }
    const out = scratch()
    const { primaryContext } = device
    callOn(primaryContext, 'cudaStreamCreateWithPriority', () => cudaStreamCreateWithPriority(out, bits, priority))
    return new Stream(primaryContext, out.u64[0] as cudaStream_t, true)
  }

  /**
   * A stream of `@shoal/driver` or of another library as one of this package: a `CUstream` and a `cudaStream_t` are the
   * same handle, and the other object keeps it. One that does not tell its device is taken to be of the current one.
   * @throws TypeError for what is no stream, or one of a context that is not its device's primary one.
   */
  static from(stream: StreamLike): Stream {
    if (stream instanceof Stream) return stream
    const { handle, device, context } = toStreamHandle(stream)
    const { primaryContext } = deviceOrCurrent(device < 0 ? undefined : device)
    if (context !== 0n && context !== primaryContext._handle) {
      throw new TypeError('the stream is not of the primary context of its device')
    }
    return new Stream(primaryContext, handle as cudaStream_t, false, stream)
  }

  /** The stream that work goes to when none is named: the legacy or the per-thread one, see `setStreamMode`. */
  static defaultOf(device?: DeviceLike | number): Stream {
    return Stream.borrow(0n, device)
  }

  /**
   * A stream somebody else made and destroys, by its handle; `0n` is the default stream of the current stream mode.
   * @param device Default: the current device.
   */
  static borrow(handle: bigint, device?: DeviceLike | number): Stream {
    checkHandle(handle)
    const { handle: checked } = toStreamHandle(handle === 0n ? null : handle)
    return new Stream(deviceOrCurrent(device).primaryContext, checked as cudaStream_t, false)
  }

  /** Takes over a stream somebody else made: dispose() destroys it. */
  static adopt(handle: bigint, device?: DeviceLike | number): Stream {
    checkHandle(handle)
    // 1 and 2 name the two default streams, which nobody may destroy.
    if (handle <= 2n) throw new RangeError('a default stream cannot be taken over')
    return new Stream(deviceOrCurrent(device).primaryContext, handle as cudaStream_t, true)
  }

  /** @internal A non-blocking stream that belongs to its context and ends with it. */
  static _createHidden(context: Context): Stream {
    const out = scratch()
    callOn(context, 'cudaStreamCreateWithPriority', () => cudaStreamCreateWithPriority(out, nonBlockingFlag, 0))
    const handle = out.u64[0] as cudaStream_t
    let isThere = true
    context._beforeClose((reason) => {
      if (isThere && reason !== 'reset') releaseOn(context, 'cudaStreamDestroy', () => cudaStreamDestroy(handle))
      isThere = false
    })
    return new Stream(context, handle, false)
  }

  /** The `cudaStream_t`. @throws DisposedError after dispose(). */
  get handle(): cudaStream_t {
    this._requireUsable()
    return this._handle
  }

  get device(): Device {
    return this.context.device as Device
  }

  /** A number no other stream of the process has (`cudaStreamGetId`). */
  get id(): bigint {
    const out = scratch()
    const { handle } = this
    callOn(this.context, 'cudaStreamGetId', () => cudaStreamGetId(handle, out))
    return out.u64[0] as bigint
  }

  /** Whether it ignores the legacy default stream (`cudaStreamGetFlags`). */
  get nonBlocking(): boolean {
    const out = scratch()
    const { handle } = this
    callOn(this.context, 'cudaStreamGetFlags', () => cudaStreamGetFlags(handle, out))
    return ((out.u32[0] as number) & nonBlockingFlag) !== 0
  }

  /** Its priority; a lower number goes first (`cudaStreamGetPriority`). */
  get priority(): number {
    const out = scratch()
    const { handle } = this
    callOn(this.context, 'cudaStreamGetPriority', () => cudaStreamGetPriority(handle, out))
    return out.i32[0] as number
  }

  /**
   * Resolves with the stream when all work queued until now has ended. The thread stays free.
   * @throws StatusError when the device failed, AbortedError, TimeoutError.
   */
  async synchronize(options: WaitOptions = {}): Promise<this> {
    checkWaitOptions(options, 'Stream.synchronize')
    const background: BackgroundWork = {}
    const work = streamStatus(this.context, this.handle, background)
    return settle(work, this, options, 'Stream.synchronize', background, runtimeErrors)
  }

  /** Blocks the thread until all work of the stream has ended (`cudaStreamSynchronize`). */
  synchronizeSync(): this {
    const { handle } = this
    callOn(this.context, 'cudaStreamSynchronize', () => cudaStreamSynchronize(handle))
    return this
  }

  /** Whether all work of the stream has ended (`cudaStreamQuery`). */
  query(): boolean {
    const { handle } = this
    callInContext(this.context._handle)
    return isOver(cudaStreamQuery(handle), 'cudaStreamQuery')
  }

  /** Makes work queued from now on wait for an event, of any device and of any package (`cudaStreamWaitEvent`). */
  waitEvent(event: EventLike): this {
    const { handle } = this
    const mark = requireEventLike(event).handle
    callOn(this.context, 'cudaStreamWaitEvent', () => cudaStreamWaitEvent(handle, mark, 0))
    return this
  }

  /**
   * Marks the end of what is queued so far, in the event given or in a new one without timing, which may be dropped
   * without dispose() (`cudaEventRecord`).
   */
  record(): Event
  record<E extends EventLike>(event: E): E
  record(event?: EventLike): EventLike {
    this._requireUsable()
    const mark = event === undefined ? Event._createMark(this.context) : event
    recordEvent(mark, this.context, this)
    return mark
  }

  /**
   * Calls `fn` on this thread after all earlier work of the stream; work queued later does not wait for it. The
   * promise resolves when `fn` returned, rejects with what it threw, or with a StatusError when the device failed, in
   * which case `fn` is not called (`cudaLaunchHostFunc`).
   */
  async hostFunction(fn: () => void): Promise<void> {
    if (typeof fn !== 'function') throw new TypeError(`fn must be a function, not ${describeValue(fn)}`)
    const { handle } = this
    return new Promise<void>((resolve, reject) => {
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
        const { functionAddress, userData } = callback
        callOn(this.context, 'cudaLaunchHostFunc', () => cudaLaunchHostFunc(handle, functionAddress, userData))
      } catch (error) {
        callback.dispose()
        throw error
      }
      // Host functions are forgotten once the device has an error; the event behind this one tells.
      streamStatus(this.context, handle).then((status) => {
        if (status === Status.success) return
        callback.dispose()
        reject(runtimeErrors.error(status, 'cudaLaunchHostFunc'))
      }, reject)
    })
  }

  get [streamProtocol](): StreamHandle {
    const { handle } = this
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
    this.context._requireAlive()
    // Throws when the object that has the stream was disposed of.
    if (this.#source !== undefined) toStreamHandle(this.#source)
  }

  protected release(): void {
    if (!this.#isOwned) return
    forgetLeak(this)
    // Queued work still ends: the driver frees the stream after it.
    try {
      releaseOn(this.context, 'cudaStreamDestroy', () => cudaStreamDestroy(this._handle))
    } finally {
      this.context._removeChild()
    }
  }
}

/**
 * The handle of the stream where an operation of `context` goes: the one named, else the default stream.
 * @throws TypeError when the stream belongs to another context, DisposedError when it is gone.
 */
export function streamFor(context: Context, stream: StreamLike | undefined): cudaStream_t {
  if (stream === undefined) return toStreamHandle(null).handle as cudaStream_t
  const { handle, device, context: owner } = toStreamHandle(stream)
  if (owner !== 0n && owner !== context._handle) {
    const where = device === context.device.ordinal ? 'another context' : `device ${device}`
    throw new TypeError(`the stream belongs to ${where}, the operation to device ${context.device.ordinal}`)
  }
  return handle as cudaStream_t
}

/** @throws TypeError for what is no stream of this package. */
export function requireStream(stream: unknown): Stream {
  if (!(stream instanceof Stream)) {
    throw new TypeError(`stream must be a Stream, not ${describeValue(stream)}; Stream.from() takes those of others`)
  }
  return stream
}

function checkHandle(handle: bigint): void {
  if (typeof handle !== 'bigint') throw new TypeError(`handle must be a bigint, not ${describeValue(handle)}`)
  if (handle < 0n || handle > maximumHandle) throw new RangeError(`handle must fit 64 bits, not ${handle}`)
}

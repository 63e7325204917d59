import type { CUevent, CUstream } from '@shoal/cuda-sys/driver'
import { type BackgroundWork, createHostCallback, type NativeMemory } from '@shoal/ffi'
import {
  DisposedError,
  describeValue,
  type StreamHandle,
  type StreamLike,
  streamProtocol,
  toStreamHandle,
} from '@shoal/types'
import type { NamedCall } from '../calls.js'
import type { Context } from '../context.js'
import { Status, type StatusErrors } from '../errors.js'
import { forgetLeak, Resource, watchForLeak } from '../lifetime.js'
import { scratch } from '../native.js'
import { type EventLike, requireEventLike } from './eventLike.js'
import { checkWaitOptions, settle, streamStatus, type WaitOptions } from './wait.js'

/** What acts on a stream, by the functions of the driver or of the runtime. */
export interface StreamCalls {
  readonly errors: StatusErrors
  readonly destroy: NamedCall<[stream: CUstream]>
  readonly getId: NamedCall<[stream: CUstream, out: NativeMemory]>
  readonly getFlags: NamedCall<[stream: CUstream, out: NativeMemory]>
  readonly getPriority: NamedCall<[stream: CUstream, out: NativeMemory]>
  readonly waitEvent: NamedCall<[stream: CUstream, event: CUevent]>
  readonly launchHostFunction: NamedCall<[stream: CUstream, fn: bigint, userData: bigint]>
}

/** `CU_STREAM_NON_BLOCKING`, `cudaStreamNonBlocking` */
export const nonBlockingFlag = 1
/** 0, 1 and 2 are the default streams. */
export const lastDefaultStream = 2n
const maximumHandle = 2n ** 64n - 1n

/** A queue of work on a device. */
export abstract class StreamObject extends Resource implements StreamLike {
  readonly context: Context
  /** @internal */
  readonly _handle: CUstream
  readonly #calls: StreamCalls
  readonly #isOwned: boolean
  /** The object that has the stream, when this one borrows it. */
  readonly #source: StreamLike | undefined
  #identity: StreamHandle | undefined

  protected constructor(
    context: Context,
    handle: CUstream,
    calls: StreamCalls,
    isOwned: boolean,
    source: StreamLike | undefined,
  ) {
    super()
    this.context = context
    this._handle = handle
    this.#calls = calls
    this.#isOwned = isOwned
    this.#source = source
    if (!isOwned) return
    context._addChild()
    watchForLeak(this, `A Stream of device ${context.device.ordinal}`, () => {
      destroy(calls, context, handle)
      return 'it is destroyed when its work has ended'
    })
  }

  /** The handle, the same for the driver and the runtime. @throws DisposedError after dispose(). */
  get handle(): CUstream {
    this._requireUsable()
    return this._handle
  }

  /** A number no other stream of the process has (`cuStreamGetId`, `cudaStreamGetId`). */
  get id(): bigint {
    return this.#ask(this.#calls.getId).u64[0] as bigint
  }

  /** Whether it ignores the legacy default stream (`cuStreamGetFlags`, `cudaStreamGetFlags`). */
  get nonBlocking(): boolean {
    return ((this.#ask(this.#calls.getFlags).u32[0] as number) & nonBlockingFlag) !== 0
  }

  /** Its priority; a lower number goes first (`cuStreamGetPriority`, `cudaStreamGetPriority`). */
  get priority(): number {
    return this.#ask(this.#calls.getPriority).i32[0] as number
  }

  /**
   * Resolves with the stream when all work queued until now has ended. The thread stays free.
   * @throws StatusError when the context failed, AbortedError, TimeoutError.
   */
  async synchronize(options: WaitOptions = {}): Promise<this> {
    checkWaitOptions(options, 'Stream.synchronize')
    const background: BackgroundWork = {}
    const work = streamStatus(this.context, this.handle, background)
    return settle(work, this, options, 'Stream.synchronize', background, this.#calls.errors)
  }

  /** Marks the end of what is queued so far, in the event given or in a new one (`cuEventRecord`, `cudaEventRecord`). */
  abstract record(event?: EventLike): EventLike

  /**
   * Makes work queued from now on wait for an event, of any device and of either package (`cuStreamWaitEvent`,
   * `cudaStreamWaitEvent`).
   */
  waitEvent(event: EventLike): this {
    const { handle } = this
    const mark = requireEventLike(event).handle
    const { errors, waitEvent } = this.#calls
    this.context._call(waitEvent.api, () => waitEvent.call(handle, mark), errors)
    return this
  }

  /**
   * Calls `fn` on this thread after all earlier work of the stream; work queued later does not wait for it. The
   * promise resolves when `fn` returned, rejects with what it threw, or with a StatusError when the context failed, in
   * which case `fn` is not called (`cuLaunchHostFunc`, `cudaLaunchHostFunc`).
   */
  async hostFunction(fn: () => void): Promise<void> {
    if (typeof fn !== 'function') throw new TypeError(`fn must be a function, not ${describeValue(fn)}`)
    const { handle } = this
    const { errors, launchHostFunction } = this.#calls
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
        const launch = (): number => launchHostFunction.call(handle, functionAddress, userData)
        this.context._call(launchHostFunction.api, launch, errors)
      } catch (error) {
        callback.dispose()
        throw error
      }
      // Host functions are forgotten once the context has an error; the event behind this one tells.
      streamStatus(this.context, handle).then((status) => {
        if (status === Status.success) return
        callback.dispose()
        reject(errors.error(status, launchHostFunction.api))
      }, reject)
    })
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

  get [Symbol.toStringTag](): string {
    return 'Stream'
  }

  /** Waits for the work and then destroys the stream, so that `await using` leaves nothing behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.disposed) return
    try {
      // Where the stream is gone with the object that has it, or with its context, there is nothing to wait for.
      if (!this._isGone && !this.context.disposed) await this.synchronize()
    } finally {
      this.dispose()
    }
  }

  protected get kind(): string {
    return 'Stream'
  }

  /** @internal */
  _requireUsable(): void {
    this._requireAlive()
    // Throws when the object that has the stream was disposed of.
    if (this.#source !== undefined) toStreamHandle(this.#source)
    this.context._requireAlive()
  }

  /** @internal Whether it was disposed of, or the object that has it: its handle may be another stream's by now. */
  get _isGone(): boolean {
    return this._disposed || (this.#source !== undefined && isDisposed(this.#source))
  }

  protected release(): void {
    if (!this.#isOwned) return
    forgetLeak(this)
    destroy(this.#calls, this.context, this._handle)
  }

  #ask({ api, call }: NamedCall<[CUstream, NativeMemory]>): NativeMemory {
    const { handle } = this
    const out = scratch()
    this.context._call(api, () => call(handle, out), this.#calls.errors)
    return out
  }
}

/** Queued work still ends: the driver frees the stream after it. */
function destroy(calls: StreamCalls, context: Context, handle: CUstream): void {
  try {
    context._release(calls.destroy.api, () => calls.destroy.call(handle), calls.errors)
  } finally {
    context._removeChild()
  }
}

function isDisposed(source: StreamLike): boolean {
  try {
    toStreamHandle(source)
    return false
  } catch (error) {
    // It says so in no other way.
    if (error instanceof DisposedError) return true
    throw error
  }
}

/** A stream that belongs to its context and ends with it: `destroy` is called unless a reset takes it first. */
export function endWithContext(context: Context, destroy: () => void): void {
  let isThere = true
  context._beforeClose((reason) => {
    if (isThere && reason !== 'reset') destroy()
    isThere = false
  })
}

/** A handle that somebody else made. @throws TypeError, RangeError */
export function requireStreamHandle(handle: bigint): void {
  if (typeof handle !== 'bigint') throw new TypeError(`handle must be a bigint, not ${describeValue(handle)}`)
  if (handle < 0n || handle > maximumHandle) throw new RangeError(`handle must fit 64 bits, not ${handle}`)
}

/** The same for one that shall be this program's to destroy: nobody may destroy a default stream. */
export function requireOwnStreamHandle(handle: bigint): void {
  requireStreamHandle(handle)
  if (handle <= lastDefaultStream) throw new RangeError('a default stream cannot be taken over')
}

/** That a stream is not where an operation of `context` can be queued. */
export function refuseForeignStream(device: number, context: Context): never {
  const where = device === context.device.ordinal ? 'another context' : `device ${device}`
  throw new TypeError(`the stream belongs to ${where}, the operation to device ${context.device.ordinal}`)
}

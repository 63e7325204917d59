import {
  driverError,
  driverErrors,
  type EventLike,
  endWithContext,
  lastDefaultStream,
  nonBlockingFlag,
  optionalBoolean,
  refuseForeignStream,
  requireEventLike,
  requireInteger,
  requireOptions,
  requireOwnStreamHandle,
  requireStreamHandle,
  Status,
  type StreamCalls,
  StreamObject,
  scratch,
  type Words,
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
import { callInContext } from '@shoal/ffi'
import { type StreamLike, toStreamHandle } from '@shoal/types'
import { type Context, requireContext } from './context.js'
import { Event, recordOn } from './event.js'

const noContext: Words = { low: 0, high: 0 }

const calls: StreamCalls = {
  errors: driverErrors,
  destroy: { api: 'cuStreamDestroy', call: (stream) => cuStreamDestroy(stream) },
  getId: { api: 'cuStreamGetId', call: (stream, out) => cuStreamGetId(stream, out) },
  getFlags: { api: 'cuStreamGetFlags', call: (stream, out) => cuStreamGetFlags(stream, out) },
  getPriority: { api: 'cuStreamGetPriority', call: (stream, out) => cuStreamGetPriority(stream, out) },
  waitEvent: { api: 'cuStreamWaitEvent', call: (stream, event) => cuStreamWaitEvent(stream, event, 0) },
  launchHostFunction: {
    api: 'cuLaunchHostFunc',
    call: (stream, fn, userData) => cuLaunchHostFunc(stream, fn, userData),
  },
}

/** How a stream is made. */
export interface StreamOptions {
  /** Does not wait for the legacy default stream, nor it for this one. Default: false, as in CUDA. */
  readonly nonBlocking?: boolean | undefined
  /** Within `context.streamPriorityRange`; a lower number goes first. Default: 0. */
  readonly priority?: number | undefined
}

/** A queue of work on a device. Made by `device.createStream()`. */
export class Stream extends StreamObject {
  declare readonly context: Context
  /** @internal The handle in two halves, for calls without a bigint. */
  readonly _words: Words
  /**
   * @internal The context that calls with this stream need: the default streams exist in each, any other stream knows its
   * own, and the driver then asks for no current one.
   */
  readonly _callContext: Words

  private constructor(context: Context, handle: CUstream, isOwned: boolean, source?: StreamLike) {
    super(context, handle, calls, isOwned, source)
    this._words = wordsOf(handle)
    this._callContext = handle > lastDefaultStream ? noContext : context._words
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
    requireStreamHandle(handle)
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
    return new Stream(context, streamFor(context, stream), false, stream)
  }

  /** Takes over a stream somebody else made: dispose() destroys it. */
  static adopt(context: Context, handle: bigint): Stream {
    requireContext(context)
    requireOwnStreamHandle(handle)
    return new Stream(context, handle as CUstream, true)
  }

  /** @internal A non-blocking stream that belongs to its context and ends with it. */
  static _createHidden(context: Context): Stream {
    const out = scratch()
    context._call('cuStreamCreateWithPriority', () => cuStreamCreateWithPriority(out, nonBlockingFlag, 0))
    const handle = out.u64[0] as CUstream
    endWithContext(context, () => context._release('cuStreamDestroy', () => cuStreamDestroy(handle)))
    return new Stream(context, handle, false)
  }

  get device(): Context['device'] {
    return this.context.device
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

  /**
   * Marks the end of what is queued so far, in the event given or in a new one without timing, which may be dropped
   * without dispose() (`cuEventRecord`).
   */
  override record(): Event
  override record<E extends EventLike>(event: E): E
  override record(given?: EventLike): EventLike {
    const event = given === undefined ? Event._createMark(this.context) : given
    if (!(event instanceof Event)) requireEventLike(event)
    this._requireUsable()
    if (event.context._handle !== this.context._handle) {
      throw new TypeError(
        `an event of device ${event.context.device.ordinal} cannot be recorded on a stream of device ` +
          `${this.context.device.ordinal}`,
      )
    }
    recordOn(event, this._handle)
    return event
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
      refuseForeignStream(stream.context.device.ordinal, context)
    }
    return stream._handle
  }
  const { handle, deviceOrdinal, context: owner } = toStreamHandle(stream)
  if (owner !== 0n && owner !== context._handle) refuseForeignStream(deviceOrdinal, context)
  return handle as CUstream
}

let defaultStream: CUstream | undefined

function defaultHandle(): CUstream {
  defaultStream ??= toStreamHandle(null).handle as CUstream
  return defaultStream
}

import {
  type Context,
  type EventLike,
  endWithContext,
  nonBlockingFlag,
  optionalBoolean,
  refuseForeignStream,
  requireInteger,
  requireOptions,
  requireOwnStreamHandle,
  requireStreamHandle,
  type StreamCalls,
  StreamObject,
  scratch,
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
import { callInContext } from '@shoal/ffi'
import { type DeviceLike, describeValue, type StreamLike, toStreamHandle } from '@shoal/types'
import { deviceOrCurrent } from './currentDevice.js'
import type { Device } from './device.js'
import { runtimeErrors } from './errors.js'
import { Event, isOver, recordEvent } from './event.js'
import { callOn, releaseOn } from './start.js'

const calls: StreamCalls = {
  errors: runtimeErrors,
  destroy: { api: 'cudaStreamDestroy', call: (stream) => cudaStreamDestroy(stream) },
  getId: { api: 'cudaStreamGetId', call: (stream, out) => cudaStreamGetId(stream, out) },
  getFlags: { api: 'cudaStreamGetFlags', call: (stream, out) => cudaStreamGetFlags(stream, out) },
  getPriority: { api: 'cudaStreamGetPriority', call: (stream, out) => cudaStreamGetPriority(stream, out) },
  waitEvent: { api: 'cudaStreamWaitEvent', call: (stream, event) => cudaStreamWaitEvent(stream, event, 0) },
  launchHostFunction: {
    api: 'cudaLaunchHostFunc',
    call: (stream, fn, userData) => cudaLaunchHostFunc(stream, fn, userData),
  },
}

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
export class Stream extends StreamObject {
  private constructor(context: Context, handle: cudaStream_t, isOwned: boolean, source?: StreamLike) {
    super(context, handle, calls, isOwned, source)
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
    const { handle, deviceOrdinal, context } = toStreamHandle(stream)
    const { primaryContext } = deviceOrCurrent(deviceOrdinal < 0 ? undefined : deviceOrdinal)
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
    requireStreamHandle(handle)
    const { handle: checked } = toStreamHandle(handle === 0n ? null : handle)
    return new Stream(deviceOrCurrent(device).primaryContext, checked as cudaStream_t, false)
  }

  /** Takes over a stream somebody else made: dispose() destroys it. */
  static adopt(handle: bigint, device?: DeviceLike | number): Stream {
    requireOwnStreamHandle(handle)
    return new Stream(deviceOrCurrent(device).primaryContext, handle as cudaStream_t, true)
  }

  /** @internal A non-blocking stream that belongs to its context and ends with it. */
  static _createHidden(context: Context): Stream {
    const out = scratch()
    callOn(context, 'cudaStreamCreateWithPriority', () => cudaStreamCreateWithPriority(out, nonBlockingFlag, 0))
    const handle = out.u64[0] as cudaStream_t
    endWithContext(context, () => releaseOn(context, 'cudaStreamDestroy', () => cudaStreamDestroy(handle)))
    return new Stream(context, handle, false)
  }

  get device(): Device {
    return this.context.device as Device
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

  /**
   * Marks the end of what is queued so far, in the event given or in a new one without timing, which may be dropped
   * without dispose() (`cudaEventRecord`).
   */
  override record(): Event
  override record<E extends EventLike>(event: E): E
  override record(event?: EventLike): EventLike {
    this._requireUsable()
    const mark = event === undefined ? Event._createMark(this.context) : event
    recordEvent(mark, this.context, this)
    return mark
  }
}

/**
 * The handle of the stream where an operation of `context` goes: the one named, else the default stream.
 * @throws TypeError when the stream belongs to another context, DisposedError when it is gone.
 */
export function streamFor(context: Context, stream: StreamLike | undefined): cudaStream_t {
  if (stream === undefined) return toStreamHandle(null).handle as cudaStream_t
  const { handle, deviceOrdinal, context: owner } = toStreamHandle(stream)
  if (owner !== 0n && owner !== context._handle) refuseForeignStream(deviceOrdinal, context)
  return handle as cudaStream_t
}

/** @throws TypeError for what is no stream of this package. */
export function requireStream(stream: unknown): Stream {
  if (!(stream instanceof Stream)) {
    throw new TypeError(`stream must be a Stream, not ${describeValue(stream)}; Stream.from() takes those of others`)
  }
  return stream
}

import {
  type Context,
  checkWaitOptions,
  type EventLike,
  eventStatus,
  forgetLeak,
  optionalBoolean,
  Resource,
  requireEventLike,
  requireOptions,
  requireTimedEvent,
  Status,
  type StreamObject,
  scratch,
  settle,
  type WaitOptions,
  watchForLeak,
} from '@shoal/cuda-base'
import {
  type cudaEvent_t,
  cudaEventCreateWithFlags,
  cudaEventDestroy,
  cudaEventElapsedTime,
  cudaEventQuery,
  cudaEventRecord,
  cudaEventSynchronize,
  cudaGetLastError,
} from '@shoal/cuda-sys/runtime'
import { type BackgroundWork, callInContext } from '@shoal/ffi'
import type { DeviceLike } from '@shoal/types'
import { deviceOrCurrent } from './currentDevice.js'
import { Device } from './device.js'
import { check, runtimeErrors } from './errors.js'
import { callOn, releaseOn } from './start.js'

const flags = { blocking: 1, disableTiming: 2, interprocess: 4 } as const

/** How an event is made. */
export interface EventOptions {
  /** Records the time, so that {@link elapsedMs} works. Default: false, which makes recording cheaper. */
  readonly timing?: boolean | undefined
  /** `synchronizeSync` sleeps instead of spinning. Default: false. */
  readonly blocking?: boolean | undefined
  /** Another process may open it; not together with timing. Default: false. */
  readonly interprocess?: boolean | undefined
  /** Default: the current device. */
  readonly device?: DeviceLike | number | undefined
}

/** A mark in the work of a stream. Made by `Event.create()` or `stream.record()`. */
export class Event extends Resource implements EventLike {
  protected readonly kind = 'Event'
  readonly context: Context
  /** Whether it records the time. */
  readonly timing: boolean
  readonly #handle: cudaEvent_t
  /** The object that has the event, when this one borrows it. */
  readonly #source: EventLike | undefined
  #waits = 0

  private constructor(context: Context, handle: cudaEvent_t, timing: boolean, isMark: boolean, source?: EventLike) {
    super()
    this.context = context
    this.#handle = handle
    this.timing = timing
    this.#source = source
    if (source !== undefined) return
    context._addChild()
    watchForLeak(this, `An Event of device ${context.device.ordinal}`, () => {
      try {
        releaseOn(context, 'cudaEventDestroy', () => cudaEventDestroy(handle))
      } finally {
        context._removeChild()
      }
      return isMark ? undefined : 'it was destroyed now'
    })
  }

  /** Makes an event on the current device, or the one named (`cudaEventCreateWithFlags`). */
  static create(options: EventOptions = {}): Event {
    requireOptions(options, 'options', '{ timing: true }')
    const timing = optionalBoolean(options.timing, 'timing', false)
    const interprocess = optionalBoolean(options.interprocess, 'interprocess', false)
    if (timing && interprocess) throw new TypeError('an event for other processes cannot record the time')
    const bits =
      (timing ? 0 : flags.disableTiming) |
      (interprocess ? flags.interprocess : 0) |
      (optionalBoolean(options.blocking, 'blocking', false) ? flags.blocking : 0)
    const { primaryContext } = deviceOrCurrent(options.device)
    return new Event(primaryContext, create(primaryContext, bits), timing, false)
  }

  /**
   * An event of `@shoal/driver` as one of this package: a `CUevent` and a `cudaEvent_t` are the same handle, and the
   * other object keeps it. @throws TypeError for what is no event; DisposedError.
   */
  static from(event: EventLike): Event {
    if (event instanceof Event) return event
    const { handle, timing, context } = requireEventLike(event)
    const { primaryContext } = Device.get(context.device.ordinal)
    if (primaryContext._handle !== context._handle) throw new TypeError('the event is not of a primary context')
    return new Event(primaryContext, handle, timing, false, event)
  }

  /** @internal An event for one mark, such as `consumer.waitEvent(producer.record())`: dropping it is no mistake. */
  static _createMark(context: Context): Event {
    return new Event(context, create(context, flags.disableTiming), false, true)
  }

  /** @internal Takes over an event that another process made and this one opened. */
  static _adopt(context: Context, handle: cudaEvent_t): Event {
    return new Event(context, handle, false, false)
  }

  /** The `cudaEvent_t`. @throws DisposedError after dispose(). */
  get handle(): cudaEvent_t {
    this._requireAlive()
    // Throws when the object that has the event was disposed of.
    return this.#source?.handle ?? this.#handle
  }

  get device(): Device {
    return this.context.device as Device
  }

  /** Marks the end of what the stream has queued so far; replaces an earlier mark (`cudaEventRecord`). */
  record(stream: StreamObject): this {
    stream.record(this)
    return this
  }

  /** Whether the work before the mark has ended; true for an event never recorded (`cudaEventQuery`). */
  query(): boolean {
    const { handle } = this
    this.context._requireAlive()
    callInContext(this.context._handle)
    return isOver(cudaEventQuery(handle), 'cudaEventQuery')
  }

  /**
   * Resolves with the event when the work before its mark has ended, and never blocks the thread. Recording it again
   * meanwhile moves the mark. @throws StatusError when the device failed, AbortedError, TimeoutError.
   */
  async synchronize(options: WaitOptions = {}): Promise<this> {
    checkWaitOptions(options, 'Event.synchronize')
    const { handle } = this
    this.context._requireAlive()
    this.#waits += 1
    const background: BackgroundWork = {}
    const over = (): void => {
      this.#waits -= 1
      if (this._disposed && this.#waits === 0) this.#destroy()
    }
    const work = eventStatus(this.context, handle, over, background)
    return settle(work, this, options, 'Event.synchronize', background, runtimeErrors)
  }

  /** Blocks the thread until the work before the mark has ended (`cudaEventSynchronize`). */
  synchronizeSync(): this {
    const { handle } = this
    callOn(this.context, 'cudaEventSynchronize', () => cudaEventSynchronize(handle))
    return this
  }

  get [Symbol.toStringTag](): string {
    return 'Event'
  }

  protected release(): void {
    forgetLeak(this)
    // The waiter still asks about it: the last wait destroys it.
    if (this.#waits === 0) this.#destroy()
  }

  #destroy(): void {
    if (this.#source !== undefined) return
    try {
      releaseOn(this.context, 'cudaEventDestroy', () => cudaEventDestroy(this.#handle))
    } finally {
      this.context._removeChild()
    }
  }
}

function create(context: Context, bits: number): cudaEvent_t {
  const out = scratch()
  callOn(context, 'cudaEventCreateWithFlags', () => cudaEventCreateWithFlags(out, bits))
  return out.u64[0] as cudaEvent_t
}

/** Whether a query says that the work is over; "not ready" is no error, though the runtime keeps it as the last one. */
export function isOver(status: number, api: string): boolean {
  if (status === Status.notReady) {
    cudaGetLastError()
    return false
  }
  check(status, api)
  return true
}

/** Records an event of any package on a stream of the same device (`cudaEventRecord`). */
export function recordEvent(event: EventLike, context: Context, stream: StreamObject): void {
  const { handle, context: owner } = requireEventLike(event)
  if (owner._handle !== context._handle) {
    throw new TypeError(
      `an event of device ${owner.device.ordinal} cannot be recorded on a stream of device ${context.device.ordinal}`,
    )
  }
  const target = stream.handle
  callOn(context, 'cudaEventRecord', () => cudaEventRecord(handle, target))
}

/**
 * Milliseconds between two recorded events, with a resolution of about half a microsecond (`cudaEventElapsedTime`).
 * @throws TypeError when one was made without timing, StatusError while one is not reached or was never recorded.
 */
export function elapsedMs(start: EventLike, end: EventLike): number {
  const first = requireTimedEvent(start, 'start')
  const last = requireTimedEvent(end, 'end').handle
  const { handle } = first
  const out = scratch()
  callOn(first.context, 'cudaEventElapsedTime', () => cudaEventElapsedTime(out, handle, last))
  return out.f32[0] as number
}

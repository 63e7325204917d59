import {
  check,
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
  type CUevent,
  type CUstream,
  cuEventCreate,
  cuEventDestroy,
  cuEventElapsedTime,
  cuEventQuery,
  cuEventRecord,
  cuEventSynchronize,
  driver,
} from '@shoal/cuda-sys/driver'
import { type BackgroundWork, callInContext, type NativeMemory } from '@shoal/ffi'
import { type NativeCall, putHandle, putPointer } from '@shoal/ffi/calls'
import { type Context, requireContext } from './context.js'

const flags = { blocking: 1, disableTiming: 2, interprocess: 4 } as const

/** How an event is made. */
export interface EventOptions {
  /** Records the time, so that {@link elapsedMs} works. Default: false, which makes recording cheaper. */
  readonly timing?: boolean | undefined
  /** `synchronizeSync` sleeps instead of spinning. Default: false. */
  readonly blocking?: boolean | undefined
  /** Another process may open it; not together with timing. Default: false. */
  readonly interprocess?: boolean | undefined
}

/** A mark in the work of a stream. Made by `device.createEvent()` or `stream.record()`. */
export class Event extends Resource {
  protected readonly kind = 'Event'
  readonly context: Context
  /** Whether it records the time. */
  readonly timing: boolean
  /** @internal */
  readonly _handle: CUevent
  #waits = 0
  /** The object that has the event, when this one borrows it. */
  readonly #source: EventLike | undefined

  private constructor(context: Context, handle: CUevent, timing: boolean, isMark = false, source?: EventLike) {
    super()
    this.context = context
    this._handle = handle
    this.timing = timing
    this.#source = source
    if (source !== undefined) return
    context._addChild()
    watchForLeak(this, `An Event of device ${context.device.ordinal}`, () => {
      try {
        context._release('cuEventDestroy', () => cuEventDestroy(handle))
      } finally {
        context._removeChild()
      }
      return isMark ? undefined : 'it was destroyed now'
    })
  }

  /** Makes an event in a context (`cuEventCreate`). */
  static create(context: Context, options: EventOptions = {}): Event {
    requireContext(context)
    requireOptions(options, 'options', '{ timing: true }')
    const timing = optionalBoolean(options.timing, 'timing', false)
    const interprocess = optionalBoolean(options.interprocess, 'interprocess', false)
    if (timing && interprocess) throw new TypeError('an event for other processes cannot record the time')
    const bits =
      (timing ? 0 : flags.disableTiming) |
      (interprocess ? flags.interprocess : 0) |
      (optionalBoolean(options.blocking, 'blocking', false) ? flags.blocking : 0)
    const out = scratch()
    context._call('cuEventCreate', () => cuEventCreate(out, bits))
    return new Event(context, out.u64[0] as CUevent, timing)
  }

  /** @internal An event for one mark, such as `consumer.waitEvent(producer.record())`: dropping it is no mistake. */
  static _createMark(context: Context): Event {
    const out = scratch()
    context._call('cuEventCreate', () => cuEventCreate(out, flags.disableTiming))
    return new Event(context, out.u64[0] as CUevent, false, true)
  }

  /** @internal Takes over an event that another process made and this one opened. */
  static _adopt(context: Context, handle: CUevent): Event {
    return new Event(context, handle, false)
  }

  /**
   * An event of another package, such as `@shoal/runtime`, as one of this package: the same handle, and the other object
   * keeps it. @throws TypeError for what is no event; DisposedError.
   */
  static from(context: Context, event: EventLike): Event {
    if (event instanceof Event) return event
    requireContext(context)
    const { handle, timing, context: owner } = requireEventLike(event)
    if (owner._handle !== context._handle) throw new TypeError('the event belongs to another context')
    return new Event(context, handle, timing, false, event)
  }

  /** The `CUevent`. @throws DisposedError after dispose(). */
  get handle(): CUevent {
    this._requireAlive()
    // Throws when the object that has the event was disposed of.
    if (this.#source !== undefined) return this.#source.handle
    return this._handle
  }

  get device(): Context['device'] {
    return this.context.device
  }

  /** Marks the end of what the stream has queued so far; replaces an earlier mark (`cuEventRecord`). */
  record(stream: StreamObject): this {
    stream.record(this)
    return this
  }

  /** Whether the work before the mark has ended; true for an event never recorded (`cuEventQuery`). */
  query(): boolean {
    const handle = this.handle
    let status: number = Status.success
    this.context.run(() => {
      status = cuEventQuery(handle)
    })
    if (status === Status.notReady) return false
    check(status, 'cuEventQuery')
    return true
  }

  /**
   * Resolves with the event when the work before its mark has ended, and never blocks the thread. Recording it again
   * meanwhile moves the mark. @throws StatusError when the context failed, AbortedError, TimeoutError.
   */
  async synchronize(options: WaitOptions = {}): Promise<this> {
    checkWaitOptions(options, 'Event.synchronize')
    const handle = this.handle
    this.context._requireAlive()
    this.#waits += 1
    const background: BackgroundWork = {}
    const over = (): void => {
      this.#waits -= 1
      if (this._disposed && this.#waits === 0) this.#destroy()
    }
    return settle(eventStatus(this.context, handle, over, background), this, options, 'Event.synchronize', background)
  }

  /** Blocks the thread until the work before the mark has ended (`cuEventSynchronize`). */
  synchronizeSync(): this {
    const handle = this.handle
    this.context._call('cuEventSynchronize', () => cuEventSynchronize(handle))
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
      this.context._release('cuEventDestroy', () => cuEventDestroy(this._handle))
    } finally {
      this.context._removeChild()
    }
  }
}

/** Records an event, of either package, on a stream handle whose context is that of the event. */
export function recordOn(event: EventLike, stream: CUstream): void {
  const { handle } = event
  callInContext(event.context._handle)
  check(cuEventRecord(handle, stream), 'cuEventRecord')
}

/**
 * Milliseconds between two recorded events, with a resolution of about half a microsecond (`cuEventElapsedTime`).
 * @throws TypeError when one was made without timing, StatusError while one is not reached or was never recorded.
 */
export function elapsedMs(start: EventLike, end: EventLike): number {
  const [first, last] = [requireTimedEvent(start, 'start').handle, requireTimedEvent(end, 'end').handle]
  const out = scratch()
  start.context._call('cuEventElapsedTime', () => elapsedTime(out, first, last))
  return out.f32[0] as number
}

/** Drivers before 12.8 have the function under its older version, with the same parameters. */
function elapsedTime(out: NativeMemory, start: CUevent, end: CUevent): number {
  if (driver.has('cuEventElapsedTime', 12080)) return cuEventElapsedTime(out, start, end)
  putPointer(0, out, 'cuEventElapsedTime', 'pMilliseconds')
  putHandle(1, start, 'cuEventElapsedTime', 'hStart')
  putHandle(2, end, 'cuEventElapsedTime', 'hEnd')
  olderElapsedTime ??= driver.bind('cuEventElapsedTime', 2000, 3)
  return olderElapsedTime()
}

let olderElapsedTime: NativeCall | undefined

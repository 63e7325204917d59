import { type CUevent, cuEventElapsedTime, cuEventElapsedTime_v2000, driver } from '@shoal/cuda-sys/driver'
import { type BackgroundWork, callInContext, type NativeMemory } from '@shoal/ffi'
import {
  foreignThis,
  isInstance,
  loadedFrom,
  type OptionKeys,
  optionalBoolean,
  otherCopy,
  propertyOf,
  requireMade,
  requireOptions,
  requireWaitOptions,
  settledNow,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import type { CudaLibrary } from '../calls/cudaLibrary.js'
import { type Context, contextOf, type DeviceOrContext } from '../context/context.js'
import { type EventLike, requireEventLike, requireTimedEvent } from '../context/eventLike.js'
import { Status } from '../errors.js'
import { forgetLeak, Resource, watchForLeak } from '../lifetime.js'
import { scratch } from '../native.js'
import { eventStatusNow } from '../waiting/eventCalls.js'
import { eventStatus, settle } from '../waiting/wait.js'

const flags = { blocking: 1, disableTiming: 2, interprocess: 4 } as const

/** Options of a new event. */
export interface EventOptions {
  /** Records the time, for {@link elapsedMs}. Default: false, which makes recording cheaper. */
  readonly timing?: boolean | undefined
  /** `synchronizeSync` sleeps instead of spinning. Default: false. */
  readonly blocking?: boolean | undefined
  /** Lets another process open the event. Cannot be combined with `timing`. Default: false. */
  readonly interprocess?: boolean | undefined
}

export const eventKeys: OptionKeys<EventOptions> = { timing: true, blocking: true, interprocess: true }

/** An object that records an event: a stream. */
interface Recorder {
  readonly context: Context
  record(event: EventLike, options?: EventUseOptions): EventLike
}

/** Options for recording an event or waiting for one. */
export interface EventUseOptions {
  /**
   * In captured work: makes recording or waiting a node of the graph, which runs at each launch. Work outside the graph
   * can then wait for the event or record it. CUDA refuses this option outside of a capture. Default: false.
   */
  readonly external?: boolean | undefined
}

const useKeys: OptionKeys<EventUseOptions> = { external: true }

/** Whether the options ask for an external event. @throws TypeError */
export function isExternal(options: EventUseOptions | undefined, api: string): boolean {
  return (
    options !== undefined && optionalBoolean(requireOptions(options, api, useKeys).external, api, 'external', false)
  )
}

/**
 * A mark in the work of a stream. It completes when all work queued before it completes.
 *
 * @example
 * using start = device.createEvent({ timing: true })
 * using end = device.createEvent({ timing: true })
 * stream.record(start)
 * kernel.launch({ grid, block, stream }, x, y)
 * stream.record(end)
 * await end.synchronize()
 * console.log(elapsedMs(start, end))
 */
export class Event extends Resource implements EventLike {
  protected readonly kind = 'Event'
  /** The context of the event. Only streams of this context can record it. */
  readonly context: Context
  /** Whether the event records the time. */
  readonly timing: boolean
  /** @internal */
  readonly _handle: CUevent
  #waits = 0
  /** The object that owns the event, if this object borrows it. */
  readonly #source: EventLike | undefined

  private constructor(context: Context, handle: CUevent, timing: boolean, isMark = false, source?: EventLike) {
    requireMade(handle, 'Event', 'Device.createEvent or Event.create')
    super()
    this.context = context
    this._handle = handle
    this.timing = timing
    this.#source = source
    if (source !== undefined) return
    context._addEvent()
    watchForLeak(this, `An Event of device ${context.device.ordinal}`, () => {
      try {
        context._release('eventDestroy', handle)
      } finally {
        context._removeEvent()
      }
      return isMark ? undefined : 'it was destroyed now'
    })
  }

  /**
   * Creates an event (`cuEventCreate`, `cudaEventCreateWithFlags`).
   * @throws TypeError for an interprocess event with timing; StatusError
   */
  static create(owner: DeviceOrContext, options: EventOptions = {}): Event {
    return Event._create(owner, options, 'Event.create')
  }

  /** @internal Creates an event. Errors name the function `api`. */
  static _create(owner: DeviceOrContext, options: EventOptions, api: string): Event {
    const context = contextOf(owner, api)
    requireOptions(options, api, eventKeys)
    const timing = optionalBoolean(options.timing, api, 'timing', false)
    const interprocess = optionalBoolean(options.interprocess, api, 'interprocess', false)
    if (timing && interprocess) throw wrongType(api, 'timing', 'false where interprocess is true', timing)
    const bits =
      (timing ? 0 : flags.disableTiming) |
      (interprocess ? flags.interprocess : 0) |
      (optionalBoolean(options.blocking, api, 'blocking', false) ? flags.blocking : 0)
    return new Event(context, create(context, bits), timing)
  }

  /**
   * @internal Creates an event for one use, such as `consumer.waitEvent(producer.record())`. Dropping it is not a leak.
   */
  static _createMark(context: Context): Event {
    return new Event(context, create(context, flags.disableTiming), false, true)
  }

  /** @internal Takes ownership of an event from another process that this process opened. */
  static _adopt(context: Context, handle: CUevent): Event {
    return new Event(context, handle, false)
  }

  /**
   * Wraps an event of another owner, such as one of `@shoal/runtime` for `@shoal/driver`. Both objects have the same
   * handle; the other object keeps owning it. @throws TypeError for other values and events of another context;
   * DisposedError
   */
  static from(owner: DeviceOrContext, event: EventLike): Event {
    const api = 'Event.from'
    const context = contextOf(owner, api)
    const { handle, timing, context: other } = requireEventLike(event, api)
    if (event instanceof Event && other === context) return event
    if (other._handle !== context._handle) throw wrongType(api, 'event', 'an Event of the same context', event)
    return new Event(context, handle, timing, false, event)
  }

  /**
   * The `CUevent`, which is also the `cudaEvent_t`. @throws DisposedError after dispose() and after its context is gone
   */
  get handle(): CUevent {
    if (!(#source in this)) throw foreignThis(this, 'Event')
    this._requireAlive()
    this.context._requireAlive()
    // Throws if the owning object was disposed of.
    if (this.#source !== undefined) return this.#source.handle
    return this._handle
  }

  /** The device of the event. */
  get device(): Context['device'] {
    return this.context.device
  }

  /**
   * Records the event after the stream's current work, like `stream.record(event, options)`. Replaces an earlier mark.
   */
  record(stream: Recorder, options?: EventUseOptions): this {
    if (!isRecorder(stream)) {
      const api = 'Event.record'
      const streamClass = { name: 'Stream', [loadedFrom]: Resource[loadedFrom] }
      throw otherCopy(stream, api, 'stream', streamClass) ?? wrongType(api, 'stream', 'a Stream', stream)
    }
    const own = this.context
    const { context } = stream
    if (context._handle !== own._handle) {
      const expected = `one of device ${own.device.ordinal}`
      throw wrongType('Event.record', 'stream', expected, stream)
    }
    // Check here too, so that the error names this function.
    if (options !== undefined) isExternal(options, 'Event.record')
    stream.record(this, options)
    return this
  }

  /**
   * Whether the work before the mark is complete. True for an event that was never recorded (`cuEventQuery`,
   * `cudaEventQuery`).
   */
  query(): boolean {
    const { handle, context } = this
    callInContext(context.handle)
    return isOver(context, context._cuda.calls.eventQuery(handle), 'eventQuery')
  }

  /**
   * Resolves with the event when the work before the mark completes. Never blocks the thread. If the event is recorded
   * again meanwhile, this call waits for the new mark. @throws StatusError when the context failed; AbortedError,
   * TimeoutError
   */
  async synchronize(options?: WaitOptions): Promise<this> {
    const api = 'Event.synchronize'
    const wait = requireWaitOptions(options, api)
    const { handle, context } = this
    context._requireAlive()
    if (eventStatusNow(context, handle) === Status.success) return settledNow(this)
    const background: BackgroundWork = {}
    const over = this.#owner.#keepForWait()
    return settle(context, eventStatus(context, handle, over, background), this, wait, api, background)
  }

  /** Blocks the thread until the work before the mark completes (`cuEventSynchronize`, `cudaEventSynchronize`). */
  synchronizeSync(): this {
    this.context._call('eventSynchronize', this.handle)
    return this
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal, timing: this.timing }
  }

  protected release(): void {
    forgetLeak(this)
    // A pending wait still queries the event, so the last wait destroys it.
    if (this.#waits === 0) this.#destroy()
  }

  /** The event that owns the handle. */
  get #owner(): Event {
    return this.#source instanceof Event ? this.#source.#owner : this
  }

  /** Keeps the handle for a wait until the returned function is called. */
  #keepForWait(): () => void {
    this.#waits += 1
    return () => {
      this.#waits -= 1
      if (this._disposed && this.#waits === 0) this.#destroy()
    }
  }

  #destroy(): void {
    if (this.#source !== undefined) return
    try {
      this.context._release('eventDestroy', this._handle)
    } finally {
      this.context._removeEvent()
    }
  }
}

/** Whether a value is a stream. Importing the stream class would be a circular import. */
function isRecorder(value: unknown): value is Recorder {
  return (
    isInstance(value, Resource as never) &&
    typeof propertyOf(value, 'record') === 'function' &&
    !(value instanceof Event)
  )
}

function create(context: Context, bits: number): CUevent {
  const out = scratch()
  context._call('eventCreate', out, bits)
  return out.u64[0] as CUevent
}

/** Whether a value is an event of this package. A revoked proxy is not, and reading it would throw. */
export function isEvent(value: unknown): value is Event {
  try {
    return value instanceof Event && value._identity !== undefined
  } catch {
    return false
  }
}

/** Returns whether a query found the work complete. "Not ready" is not an error. @throws StatusError */
export function isOver(context: Context, status: number, call: 'eventQuery' | 'streamQuery'): boolean {
  if (status === Status.success) return true
  if (status !== Status.notReady) throw context._error(status, call)
  context._cuda.forgetNotReady()
  return false
}

/**
 * Returns the milliseconds between two recorded events, with a resolution of about 0.5 µs (`cuEventElapsedTime`,
 * `cudaEventElapsedTime`).
 * @throws TypeError for an event without timing or events of two contexts; StatusError, whose message names the event,
 * when one is not complete or was never recorded
 */
export function elapsedMs(start: EventLike, end: EventLike): number {
  const first = requireTimedEvent(start, 'elapsedMs', 'start')
  const last = requireTimedEvent(end, 'elapsedMs', 'end')
  const { context } = first
  const out = scratch()
  const status = elapsedStatus(out, first, last)
  if (status === Status.success) return out.f32[0] as number
  if (last.context._handle !== context._handle) {
    const where = whereIs(context.device.ordinal, last.context)
    throw new TypeError(`elapsedMs: end must be an Event of the context of start, on device ${where}`)
  }
  throw context._error(status, 'eventElapsedTime', whyNotElapsed(first, last))
}

function whereIs(ordinal: number, { device }: Context): string {
  return device.ordinal === ordinal
    ? `${ordinal}, not of another context there`
    : `${ordinal}, not on device ${device.ordinal}`
}

/** Returns which event has no time yet, and why. The time from a recorded event to itself is 0. */
function whyNotElapsed(start: EventLike, end: EventLike): string | undefined {
  const out = scratch()
  for (const [name, event] of Object.entries({ start, end })) {
    const { handle, context } = event
    if (eventStatusNow(context, handle as CUevent) === Status.notReady)
      return `elapsedMs: ${name} is not complete; await ${name}.synchronize() first`
    if (elapsedStatus(out, event, event) !== Status.success)
      return `elapsedMs: ${name} was never recorded; call stream.record(${name}) first`
  }
  return undefined
}

function elapsedStatus(out: NativeMemory, start: EventLike, end: EventLike): number {
  const [first, last] = [start.handle, end.handle]
  callInContext(start.context.handle)
  return elapsedTime(start.context._cuda, out, first, last)
}

/** Drivers before 12.8 have only the older version of the function, with the same parameters. */
function elapsedTime({ name, calls }: CudaLibrary, out: NativeMemory, start: CUevent, end: CUevent): number {
  if (name === 'runtime') return calls.eventElapsedTime(out, start, end)
  if (driver.has('cuEventElapsedTime', 12080)) return cuEventElapsedTime(out, start, end)
  return cuEventElapsedTime_v2000(out, start, end)
}

import {
  DisposedError,
  inspectKey,
  inspectLine,
  isArray,
  loadedFrom,
  made,
  type OptionKeys,
  optionalBoolean,
  PublicObject,
  requireAddress,
  requireFunction,
  requireInstance,
  requireInteger,
  requireMade,
  requireOneOf,
  requireOptions,
  settleInTime,
  wrongType,
} from '@shoal/types'
import { dropCallContext } from '../addon/block.js'
import type { Addon, CallResult, NativeLane } from '../addon/contract.js'
import { addon, pending } from '../addon/load.js'
import { recording, refuseAsynchronous } from '../calls/recording.js'
import { contextError } from '../context.js'
import { NativeMemory } from '../memory/nativeMemory.js'
import { type BackgroundWork, holdEventLoop, noMoreThreads } from './hold.js'
import { inNextTurn } from './nextTurn.js'
import { requireBackground } from './waitOptions.js'

/** As in all limits of waits. */
const mostMilliseconds = 2 ** 31 - 1

/**
 * A native thread of its own: what is queued on it runs in order, always on that thread.
 *
 * @example
 * using lane = createLane()
 * await offThread({ lane }, () => cudaSetDevice(1))
 * await offThread({ lane }, () => cudaDeviceSynchronize()) // on the same thread
 */
export class Lane extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  readonly #native: NativeLane
  #disposed = false

  /** @internal */
  constructor(key: typeof made) {
    requireMade(key, 'Lane', 'createLane', 'symbol')
    super()
    this.#native = addon().createLane()
  }

  /** @internal */
  static nativeOf(lane: Lane): NativeLane {
    return lane.#native
  }

  /** The thread ends after what is queued. Idempotent. */
  dispose(): void {
    this.#disposed = true
    addon().closeLane(this.#native)
  }

  /**
   * Blocks this thread until everything queued has run, or until `timeout` milliseconds have passed. Default: no limit.
   * The promises of {@link offThread} resolve later, in a turn of the event loop.
   * @returns whether everything has run.
   */
  waitSync(timeout?: number): boolean {
    const limit =
      timeout === undefined
        ? mostMilliseconds
        : requireInteger(timeout, 'Lane.waitSync', 'timeout', 0, mostMilliseconds)
    while (!addon().waitForLane(this.#native, limit)) if (timeout !== undefined) return false
    return true
  }

  /** Whether dispose() was called: nothing more can be queued. */
  get disposed(): boolean {
    return this.#disposed
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  override [inspectKey](): string {
    return inspectLine('Lane', { disposed: this.#disposed })
  }
}

/** Starts a native thread for calls that must all run on the same one. */
export function createLane(): Lane {
  return new Lane(made)
}

/** How calls run on a native thread. */
export interface OffThreadOptions {
  /** Context that is current while the calls run; restored afterwards. */
  readonly context?: bigint
  /** Thread to run on. Default: any that is free, or a new one. */
  readonly lane?: Lane
  /** Objects that must stay reachable, and memory that must stay allocated, until the calls have run. */
  readonly keep?: readonly object[]
  /** Filled with what lets the process end although the calls have not returned. */
  readonly background?: BackgroundWork | undefined
  /**
   * Whether the first call that returns another status than 0 ends the sequence. Every result of type `int` or
   * `unsigned` counts as a status. Default `true`.
   */
  readonly stopOnError?: boolean
  /**
   * What the promise gives for each call: its `status`, 0 for functions that return none, or its `value`, as the call
   * itself would have returned it: a bigint for 64 bits, bytes for a structure. Default `status`.
   */
  readonly results?: 'status' | 'value'
}

/** {@link OffThreadOptions} with each default. */
export interface OffThreadCalls extends Required<Omit<OffThreadOptions, 'lane'>> {
  readonly lane: Lane | undefined
}

const api = 'offThread'
const keys: OptionKeys<OffThreadOptions> = {
  context: true,
  lane: true,
  keep: true,
  background: true,
  stopOnError: true,
  results: true,
}

let nextJob = 1

/**
 * Runs C calls on a native thread while JavaScript goes on. `record` runs at once: functions of sys packages called in
 * it check their arguments, are queued instead of being called, and return 0. Then all run in order on one thread.
 * @returns one result for each call that ran; shorter than the sequence when an error ended it.
 * @throws TypeError for an argument in the JavaScript heap (use NativeMemory) or a `record` that is asynchronous;
 * StatusError when the context cannot be made current; DisposedError for a lane that was disposed of.
 * @example
 * const [status] = await offThread({ context }, () => cuCtxSynchronize())
 */
export function offThread(
  options: OffThreadOptions & { readonly results: 'value' },
  record: () => void,
): Promise<CallResult[]>
export function offThread(
  options: OffThreadOptions & { readonly results?: 'status' },
  record: () => void,
): Promise<number[]>
export function offThread(options: OffThreadOptions, record: () => unknown): Promise<CallResult[]> {
  let checked: OffThreadCalls
  try {
    checked = checkOptions(options)
    requireFunction(record, api, 'record')
  } catch (error) {
    return Promise.reject(error)
  }
  return callOffThread(checked, record)
}

/** The same of what needs no check. */
export function callOffThread(calls: OffThreadCalls, record: () => unknown): Promise<CallResult[]> {
  const { context, lane, keep, background, stopOnError, results } = calls
  const native = addon()
  native.startRecording()
  recording.addon = native
  try {
    refuseAsynchronous(record(), api)
    for (const object of keep) if (object instanceof NativeMemory) native.keep(object.address)
  } catch (error) {
    native.dropRecording()
    return Promise.reject(error)
  } finally {
    recording.addon = undefined
    // A context for a call that was not made is not for whatever comes next.
    dropCallContext()
  }
  return new Promise((resolve, reject) => {
    const id = nextJob++
    const held = [...keep]
    let release: (() => void) | undefined
    pending.jobs.set(id, (contextStatus, values = []) => {
      held.length = 0
      release?.()
      // Node reports up to a thousand ends in one turn, also of calls that earlier ones of them made.
      if (contextStatus === 0) settleInTime(() => resolve(values))
      else reject(contextError(contextStatus, ' on the thread of the call'))
    })
    try {
      release = holdEventLoop(background)
      if (native.run(id, context, stopOnError, results === 'value', lane === undefined ? null : Lane.nativeOf(lane))) {
        if (native.hasSpareProcessors) deliverSoon(native)
        return
      }
      throw noMoreThreads(api)
    } catch (error) {
      native.dropRecording()
      pending.jobs.delete(id)
      release?.()
      reject(error)
    }
  })
}

/** Calls on a lane for which nobody wakes the event loop. */
export interface QuietCalls {
  readonly lane: Lane
  /** Context that is current while the calls run. */
  readonly context: bigint
  /** Whether somebody waits: then the event loop hears of the end at once, not when the lane has nothing more to do. */
  readonly isPrompt: boolean
  /** Words for which the call recorded last is made again, as its first argument. */
  readonly repeats: { readonly words: BigUint64Array; readonly count: number } | undefined
}

/**
 * Makes the calls of `record` on a lane, those behind one that fails too, and lets the process end meanwhile. `done` is
 * called with the statuses, or undefined when all are 0, or with why the context could not be made current; in
 * {@link deliverQuiet} or a later turn.
 * @returns false when the system refused to start a thread; then `done` is not called
 */
export function runQuietly(
  { lane, context, isPrompt, repeats }: QuietCalls,
  record: () => void,
  done: (statuses: readonly number[] | undefined, error: Error | undefined) => void,
): boolean {
  const native = addon()
  const id = nextJob++
  native.startRecording()
  recording.addon = native
  try {
    record()
    if (repeats !== undefined) native.repeat(repeats.words, repeats.count)
  } catch (error) {
    native.dropRecording()
    throw error
  } finally {
    recording.addon = undefined
    dropCallContext()
  }
  pending.jobs.set(id, (contextStatus, values) => {
    if (contextStatus === 0) done(values as readonly number[] | undefined, undefined)
    else done(undefined, contextError(contextStatus, ' on the thread of the call'))
  })
  if (native.runQuietly(id, context, Lane.nativeOf(lane), isPrompt)) {
    if (isPrompt && native.hasSpareProcessors) deliverSoon(native)
    return true
  }
  native.dropRecording()
  pending.jobs.delete(id)
  return false
}

/** Calls each `done` of {@link runQuietly} whose calls have returned. */
export function deliverQuiet(): void {
  addon().deliverQuiet()
}

// A short call is over before the event loop could be woken for it, so it asks itself at first, once a turn, and lets
// all else through between. Meanwhile nobody wakes it.
const longestShortCall = 0.1
/** How long it looks in a turn, in nanoseconds: most short calls end within the first. */
const look = 15_000
let askUntil = 0
let isAsking = false

function deliverSoon(native: Addon): void {
  askUntil = performance.now() + longestShortCall
  if (isAsking) return
  const turn = (): void => {
    // Whoever was told makes the next call after this turn: it then finds the asking begun.
    const isAsked = pending.jobs.size > 0
    try {
      if (isAsked) native.deliver(look)
    } finally {
      isAsking = isAsked && performance.now() < askUntil
      if (isAsking) inNextTurn(turn)
      else native.setAsking(false)
    }
  }
  isAsking = true
  native.setAsking(true)
  inNextTurn(turn)
}

/** Each option, read once. @throws TypeError, RangeError, DisposedError */
function checkOptions(options: OffThreadOptions): OffThreadCalls {
  const { context = 0n, lane, keep = [], background, stopOnError, results } = requireOptions(options, api, keys)
  requireAddress(context, api, 'context')
  if (lane !== undefined && requireInstance(lane, api, 'lane', Lane).disposed) {
    throw new DisposedError({ object: 'Lane', operation: api })
  }
  if (!isArray(keep)) throw wrongType(api, 'keep', 'an array', keep)
  requireBackground(background, api)
  return {
    context,
    lane,
    keep,
    background,
    stopOnError: optionalBoolean(stopOnError, api, 'stopOnError', true),
    results: results === undefined ? 'status' : requireOneOf(results, api, 'results', ['status', 'value']),
  }
}

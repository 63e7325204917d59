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

/** The limit of all waits. */
const mostMilliseconds = 2 ** 31 - 1

/**
 * A dedicated native thread that runs queued calls in order.
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

  /** Ends the thread after its queued calls. Idempotent. */
  dispose(): void {
    this.#disposed = true
    addon().closeLane(this.#native)
  }

  /**
   * Blocks until all queued calls have run, or until `timeout` milliseconds have passed. Default: no limit.
   *
   * The promises of {@link offThread} resolve later, in an event loop turn.
   * @returns whether all calls have run.
   */
  waitSync(timeout?: number): boolean {
    const limit =
      timeout === undefined
        ? mostMilliseconds
        : requireInteger(timeout, 'Lane.waitSync', 'timeout', 0, mostMilliseconds)
    while (!addon().waitForLane(this.#native, limit)) if (timeout !== undefined) return false
    return true
  }

  /** Whether dispose() was called. No calls can be queued then. */
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

/** Starts a native thread for calls that must run on the same thread. */
export function createLane(): Lane {
  return new Lane(made)
}

/** Options of {@link offThread}. */
export interface OffThreadOptions {
  /** Context that is current during the calls; the previous one is restored afterwards. */
  readonly context?: bigint
  /** Thread to run on. Default: any free thread, or a new one. */
  readonly lane?: Lane
  /** Objects to keep reachable, and memory to keep allocated, until the calls have run. */
  readonly keep?: readonly object[]
  /** Filled with a function that lets the process end before the calls return. */
  readonly background?: BackgroundWork | undefined
  /**
   * Whether the first nonzero status ends the sequence. Default: true.
   *
   * Every result of type `int` or `unsigned` counts as a status.
   */
  readonly stopOnError?: boolean
  /**
   * Result per call: its `status` (0 if it returns none) or its `value`. Default: `status`.
   *
   * A value has the type of a direct call: a bigint for 64 bits, bytes for a structure.
   */
  readonly results?: 'status' | 'value'
}

/** {@link OffThreadOptions} with all defaults filled in. */
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
 * Runs C calls on a native thread while JavaScript continues.
 *
 * `record` runs immediately. Functions of sys packages called in it check their arguments, are queued instead of
 * called, and return 0. Then all run in order on one thread.
 * @returns one result per call that ran; shorter than the sequence if an error ended it.
 * @throws TypeError for an argument in the JavaScript heap (use NativeMemory) or an asynchronous `record`; StatusError
 * if the context cannot be made current; DisposedError for a disposed lane.
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

/** Like {@link offThread}, for options that need no check. */
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
    // The next call must not get the context of a call that was not made.
    dropCallContext()
  }
  return new Promise((resolve, reject) => {
    const id = nextJob++
    const held = [...keep]
    let release: (() => void) | undefined
    pending.jobs.set(id, (contextStatus, values = []) => {
      held.length = 0
      release?.()
      // One turn can report a thousand completions, including calls made by earlier ones.
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

/** Calls on a lane that do not wake the event loop. */
export interface QuietCalls {
  readonly lane: Lane
  /** Context that is current during the calls. */
  readonly context: bigint
  /** Whether completion is reported after these calls. Otherwise it is reported when the lane is idle. */
  readonly isPrompt: boolean
  /** Repeats the last recorded call once per word. The word replaces the first argument of the call. */
  readonly repeats: { readonly words: BigUint64Array; readonly count: number } | undefined
}

/**
 * Makes the calls of `record` on a lane, without keeping the process alive.
 *
 * It continues after a failed call.
 *
 * `done` gets the statuses, or undefined if all are 0, or an error if the context cannot be made current. It is called
 * in {@link deliverQuiet} or a later turn.
 * @returns false if the system refused to start a thread; `done` is not called then
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

// A short call completes before the event loop could be woken. So the loop polls first, once per turn, and lets other
// work run between polls. Native threads do not wake it meanwhile.
const longestShortCall = 0.1
/** Nanoseconds of polling per turn: most short calls complete in the first one. */
const look = 15_000
let askUntil = 0
let isAsking = false

function deliverSoon(native: Addon): void {
  askUntil = performance.now() + longestShortCall
  if (isAsking) return
  const turn = (): void => {
    // A handler makes the next call after this turn, and then finds polling active.
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

/** Checks and reads each option once. @throws TypeError, RangeError, DisposedError */
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

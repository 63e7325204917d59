import { type CUevent, type CUstream, cuStreamQuery } from '@shoal/cuda-sys/driver'
import { callInContext, inNextTurn } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { Status } from '../errors.js'
import { eventStatusNow } from './eventCalls.js'

// Short work completes before a native thread could report it: two thread switches take at least 15 µs. So the event
// loop first polls by itself, once per turn, and runs everything else between the polls.

/** Milliseconds of polling before the native thread takes over. Most single copies and kernels complete sooner. */
const longest = 0.1
/** Maximum number of waits, so that a turn stays short. */
const mostWaits = 32
/**
 * After this many incomplete events a turn stops polling, because work on many streams completes one after the other.
 */
const mostMisses = 2
/** Maximum number of unobserved waits. */
const mostUnobserved = 256

/** The waits of one turn. Their time starts with the next turn, because a program may queue much work in one turn. */
interface Begun {
  /** Time when the native thread takes over; unknown until the next turn. */
  until: number
}

let begun: Begun = { until: Number.NaN }

/** A wait for the device's work, through an event after the work. */
export abstract class ShortWait {
  /** @internal */
  _begun: Begun = begun
  readonly context: Context
  abstract readonly event: CUevent

  constructor(context: Context) {
    this.context = context
  }

  /** Receives the event's final status, or "not ready" if the work takes longer. An error is an uncaught exception. */
  abstract reached(status: number): void
}

/** Waits to poll. Incomplete ones move to the end of the list. */
let waits: ShortWait[] = []
/** Waits that only release memory. Each turn polls the first one, and the next one after it completed. */
let unobserved: ShortWait[] = []
/** Work that gets an event in the next turn, unless an event was recorded before. */
const unmarked: { mark(): void }[] = []
let isRunning = false

/** Whether all work of a stream is complete without an error. */
export function isStreamDone(context: Context, stream: CUstream): boolean {
  callInContext(context._handle)
  const status: number = cuStreamQuery(stream)
  return status === Status.success
}

/**
 * Polls the event once per turn and then calls `reached`. If many waits are pending, calls it now with "not ready".
 * @param isUrgent whether the result is needed as soon as possible
 */
export function shortWait(wait: ShortWait, isUrgent: boolean): void {
  const list = isUrgent ? waits : unobserved
  if (list.length >= (isUrgent ? mostWaits : mostUnobserved)) {
    wait.reached(Status.notReady)
    return
  }
  wait._begun = begun
  list.push(wait)
  keepTurning()
}

/** Calls `mark`, which must not throw, in the next turn. */
export function markInTurn(work: { mark(): void }): void {
  unmarked.push(work)
  keepTurning()
}

function keepTurning(): void {
  if (isRunning) return
  isRunning = true
  inNextTurn(turn)
}

function turn(): void {
  const now = performance.now()
  for (const work of unmarked) work.mark()
  unmarked.length = 0
  begun.until = now + longest
  begun = { until: Number.NaN }
  const asked = waits
  waits = []
  let missed = 0
  for (const wait of asked) {
    // Waits that were not polled go before waits that were.
    if (missed < mostMisses && hasEnded(wait, now)) continue
    missed += 1
    waits.push(wait)
  }
  for (let turned = Math.min(missed, mostMisses); turned > 0; turned -= 1) waits.push(waits.shift() as ShortWait)
  if (unobserved.length > 0) askUnobserved(now)
  isRunning = waits.length > 0 || unobserved.length > 0 || unmarked.length > 0
  if (isRunning) inNextTurn(turn)
}

/** Polls the unobserved waits after the urgent ones, because one poll takes more than a microsecond. */
function askUnobserved(now: number): void {
  const asked = unobserved
  unobserved = []
  let missed = false
  for (const wait of asked) {
    missed ||= (waits.length > 0 && now < wait._begun.until) || !hasEnded(wait, now)
    if (missed) unobserved.push(wait)
  }
}

/** Polls a wait. Returns whether its callback was called. */
function hasEnded(wait: ShortWait, now: number): boolean {
  const status = eventStatusNow(wait.context, wait.event)
  if (status === Status.notReady && now < wait._begun.until) return false
  end(wait, status)
  return true
}

function end(wait: ShortWait, status: number): void {
  try {
    wait.reached(status)
  } catch (error) {
    // Throw later: this turn must poll other waits and schedule the next turn.
    queueMicrotask(() => {
      throw error
    })
  }
}

import { type CUevent, type CUstream, cuStreamQuery } from '@shoal/cuda-sys/driver'
import { callInContext, inNextTurn } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { Status } from '../errors.js'
import { eventStatusNow } from './eventCalls.js'

// Short work is over before a native thread could have told of it: two changes of thread take 15 µs and more. So the
// event loop asks itself at first, once a turn, and lets everything else through between.

/**
 * Milliseconds after which a wait is left to the native thread: most copies and kernels that are awaited one by one end
 * before.
 */
const longest = 0.1
/** A turn must stay short, however many wait. */
const mostWaits = 32
/** So many that are not ready end the asking of a turn: work on many streams ends one after the other. */
const mostMisses = 2
/** Of those whose end nobody is told of. */
const mostUnobserved = 256

/** The waits of one turn of the event loop, whose time begins with the next one, as a program may queue much in one. */
interface Begun {
  /** When they are left to the native thread; unknown until the next turn. */
  until: number
}

let begun: Begun = { until: Number.NaN }

/** Work of the GPU that somebody waits for the end of, which an event behind it tells. */
export abstract class ShortWait {
  /** @internal */
  _begun: Begun = begun
  readonly context: Context
  abstract readonly event: CUevent

  constructor(context: Context) {
    this.context = context
  }

  /**
   * Gets the status of the event: that it is not ready where that takes longer. What it throws is an uncaught
   * exception.
   */
  abstract reached(status: number): void
}

/** Asked for in turn: what a turn finds not ready goes to the end. */
let waits: ShortWait[] = []
/** Waits that only give memory back: the first is asked for in a turn, and the next ones once it has ended. */
let unobserved: ShortWait[] = []
/** Work that gets an event behind it in the next turn, where none was recorded before. */
const unmarked: { mark(): void }[] = []
let isRunning = false

/** Whether all work of a stream has ended without an error. */
export function isStreamDone(context: Context, stream: CUstream): boolean {
  callInContext(context._handle)
  const status: number = cuStreamQuery(stream)
  return status === Status.success
}

/**
 * Asks for the event once a turn and calls `reached`: at once, with "not ready", where many wait already.
 * @param isUrgent whether it is to be known as soon as it can be
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

/** Has work marked in the next turn, by what does not throw. */
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
    // What was not asked for goes before what was.
    if (missed < mostMisses && hasEnded(wait, now)) continue
    missed += 1
    waits.push(wait)
  }
  for (let turned = Math.min(missed, mostMisses); turned > 0; turned -= 1) waits.push(waits.shift() as ShortWait)
  if (unobserved.length > 0) askUnobserved(now)
  isRunning = waits.length > 0 || unobserved.length > 0 || unmarked.length > 0
  if (isRunning) inNextTurn(turn)
}

/** To be told of an end takes more than a microsecond: what is urgent comes first. */
function askUnobserved(now: number): void {
  const asked = unobserved
  unobserved = []
  let missed = false
  for (const wait of asked) {
    missed ||= (waits.length > 0 && now < wait._begun.until) || !hasEnded(wait, now)
    if (missed) unobserved.push(wait)
  }
}

/** Whether it was called back. */
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
    // Not from here: the turn has others to ask for, and the next turn to begin.
    queueMicrotask(() => {
      throw error
    })
  }
}

import { type CUevent, type CUstream, cuEventQuery, cuStreamQuery } from '@shoal/cuda-sys/driver/common'
import { callInContext } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { Status } from '../errors.js'

// Short work is over before a native thread could have told of it: two changes of thread take 15 µs and more. So the event
// loop asks itself at first, once a turn, and lets everything else through between.

/** Milliseconds after which a wait is left to the native thread: most copies and kernels that are awaited one by one end before. */
const longest = 0.1
/** A turn must stay short, however many wait. */
const mostWaits = 32
/** So many that are not ready end the asking of a turn: work on many streams ends one after the other. */
const mostMisses = 2
/** Of those whose end nobody is told of. */
const mostUnobserved = 256

interface ShortWait {
  readonly context: Context
  readonly event: CUevent
  /** Counted from the first turn, as a program may queue much in one; NaN until then. */
  until: number
  readonly reached: (status: number) => void
}

/** Asked for in turn: what a turn finds not ready goes to the end. */
let waits: ShortWait[] = []
/** Waits that only give memory back: the first is asked for in a turn, and the next ones once it has ended. */
let unobserved: ShortWait[] = []
let isRunning = false

/** The status of an event now. */
export function eventStatusNow(context: Context, event: CUevent): number {
  callInContext(context._handle)
  return cuEventQuery(event)
}

/** Whether all work of a stream has ended without an error. */
export function isStreamDone(context: Context, stream: CUstream): boolean {
  callInContext(context._handle)
  const status: number = cuStreamQuery(stream)
  return status === Status.success
}

/**
 * Calls back with the status of an event: that it is not ready where that takes longer, or, at once, where many wait already.
 * What `reached` throws then is an uncaught exception; the other waits go on.
 * @param isUrgent whether it is to be known as soon as it can be
 */
export function shortWait(
  context: Context,
  event: CUevent,
  isUrgent: boolean,
  reached: (status: number) => void,
): void {
  const list = isUrgent ? waits : unobserved
  if (list.length >= (isUrgent ? mostWaits : mostUnobserved)) {
    reached(Status.notReady)
    return
  }
  list.push({ context, event, until: Number.NaN, reached })
  if (isRunning) return
  isRunning = true
  setImmediate(turn)
}

function turn(): void {
  const now = performance.now()
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
  let ended = 0
  for (const wait of unobserved) {
    if (!hasEnded(wait, now)) break
    ended += 1
  }
  if (ended > 0) unobserved = unobserved.slice(ended)
  isRunning = waits.length > 0 || unobserved.length > 0
  if (isRunning) setImmediate(turn)
}

/** Whether it was called back. */
function hasEnded(wait: ShortWait, now: number): boolean {
  if (Number.isNaN(wait.until)) wait.until = now + longest
  const status = eventStatusNow(wait.context, wait.event)
  if (status === Status.notReady && now < wait.until) return false
  try {
    wait.reached(status)
  } catch (error) {
    // Not from here: the turn has others to ask for, and the next turn to begin.
    queueMicrotask(() => {
      throw error
    })
  }
  return true
}

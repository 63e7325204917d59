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

/** Work of the GPU that somebody waits for the end of, which an event behind it tells. */
export abstract class ShortWait {
  /** Counted from the first turn, as a program may queue much in one; NaN until then. */
  _until = Number.NaN
  _order = 0
  _era = 0

  readonly context: Context
  abstract readonly event: CUevent
  /** The stream that the event was recorded on just now, where that is known. */
  readonly stream: CUstream | undefined

  constructor(context: Context, stream: CUstream | undefined) {
    this.context = context
    this.stream = stream
  }

  /** Gets the status of the event: that it is not ready where that takes longer. What it throws is an uncaught exception. */
  abstract reached(status: number): void
}

/** Asked for in turn: what a turn finds not ready goes to the end. */
let waits: ShortWait[] = []
/** Waits that only give memory back: the first is asked for in a turn, and the next ones once it has ended. */
let unobserved: ShortWait[] = []
let isRunning = false
let waitsBegun = 0
/** In one era the handle of a stream means the same stream. */
let era = 0
/** The last wait of each stream that has ended in this turn. */
const lastEnded = new Map<CUstream, ShortWait>()

/** A stream is being destroyed: another one may get its handle while its last work is still under way. */
export function streamIsGone(): void {
  era += 1
}

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
 * Asks for the event once a turn and calls `reached`: at once, with "not ready", where many wait already.
 * @param isUrgent whether it is to be known as soon as it can be
 */
export function shortWait(wait: ShortWait, isUrgent: boolean): void {
  const list = isUrgent ? waits : unobserved
  if (list.length >= (isUrgent ? mostWaits : mostUnobserved)) {
    wait.reached(Status.notReady)
    return
  }
  wait._order = waitsBegun++
  wait._era = era
  list.push(wait)
  if (isRunning) return
  isRunning = true
  setImmediate(turn)
}

function turn(): void {
  const now = performance.now()
  era += 1
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
  isRunning = waits.length > 0 || unobserved.length > 0
  if (isRunning) setImmediate(turn)
}

/**
 * What stands before work that has ended, in the same stream, has ended too. To ask for it as well would take more than a
 * microsecond, so where something urgent is yet to end, it may be that.
 */
function askUnobserved(now: number): void {
  const asked = unobserved
  unobserved = []
  let missed = false
  for (const wait of asked) {
    if (Number.isNaN(wait._until)) wait._until = now + longest
    if (isBeforeEnded(wait)) {
      end(wait, Status.success)
      continue
    }
    missed ||= (waits.length > 0 && now < wait._until) || !hasEnded(wait, now)
    if (missed) unobserved.push(wait)
  }
  lastEnded.clear()
}

function isBeforeEnded({ stream, context, _order, _era }: ShortWait): boolean {
  const last = stream === undefined ? undefined : lastEnded.get(stream)
  return (
    last !== undefined &&
    last._order > _order &&
    last._era === _era &&
    // The default streams of all contexts have the same handles.
    last.context._handle === context._handle
  )
}

/** Whether it was called back. */
function hasEnded(wait: ShortWait, now: number): boolean {
  if (Number.isNaN(wait._until)) wait._until = now + longest
  const status = eventStatusNow(wait.context, wait.event)
  if (status === Status.notReady && now < wait._until) return false
  if (status === Status.success && wait.stream !== undefined && unobserved.length > 0) lastEnded.set(wait.stream, wait)
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

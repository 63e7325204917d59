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

interface ShortWait {
  readonly context: Context
  readonly event: CUevent
  readonly until: number
  readonly resolve: (status: number) => void
}

let waits: ShortWait[] = []

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

/** Resolves with the status of an event: that it is not ready where that takes longer, or where many wait already. */
export function shortWait(context: Context, event: CUevent): Promise<number> {
  if (waits.length >= mostWaits) return Promise.resolve(Status.notReady)
  return new Promise((resolve) => {
    waits.push({ context, event, until: performance.now() + longest, resolve })
    if (waits.length === 1) setImmediate(turn)
  })
}

function turn(): void {
  const asked = waits
  waits = []
  const now = performance.now()
  for (const wait of asked) {
    const status = eventStatusNow(wait.context, wait.event)
    if (status !== Status.notReady || now >= wait.until) wait.resolve(status)
    else waits.push(wait)
  }
  if (waits.length > 0) setImmediate(turn)
}

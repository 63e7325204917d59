import { availableParallelism } from 'node:os'
import { type Lane, type NativeMemory, offThread, restoreSignals } from '@shoal/ffi'

/** Calls that run one after the other in one go; each gives a status. */
export interface CallStep {
  /** Each gives its status. */
  readonly calls: readonly (() => number)[]
  /** Memory that the calls use. */
  readonly keep: readonly NativeMemory[]
}

/** A sequence of steps: it is handed the statuses of each, and ends with its result. */
export type Calls<T> = Generator<CallStep, T, readonly number[]>

/** Runs all calls of a sequence in this thread. */
export function runHere<T>(sequence: Calls<T>): T {
  let next = sequence.next()
  while (!next.done) {
    let statuses: readonly number[]
    try {
      statuses = next.value.calls.map((call) => call())
    } catch (error) {
      next = sequence.throw(error)
      continue
    } finally {
      restoreSignals()
    }
    next = sequence.next(statuses)
  }
  return next.value
}

// Compilers take all of a processor. One is left to the event loop.
const most = Math.max(1, availableParallelism() - 1)
let running = 0
const waiting: (() => void)[] = []

/** How a sequence runs on a native thread. */
export interface OffThread {
  /** On the thread of a lane. */
  readonly lane?: Lane
  /** Once it has fired, a sequence that has not begun never does. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Runs each step of a sequence on a native thread: the event loop goes on. As many at once as there are processors,
 * less one.
 */
export async function runOffThread<T>(sequence: Calls<T>, { lane, signal }: OffThread = {}): Promise<T> {
  if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
  else running += 1
  try {
    signal?.throwIfAborted()
    return await runSteps(sequence, lane)
  } finally {
    // Whoever waits takes over the place.
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }
}

async function runSteps<T>(sequence: Calls<T>, lane: Lane | undefined): Promise<T> {
  let next = sequence.next()
  while (!next.done) {
    const { calls, keep } = next.value
    let statuses: readonly number[]
    try {
      statuses = await offThread({ keep, stopOnError: false, ...(lane === undefined ? {} : { lane }) }, () => {
        for (const call of calls) call()
      })
    } catch (error) {
      next = sequence.throw(error)
      continue
    } finally {
      restoreSignals()
    }
    next = sequence.next(statuses)
  }
  return next.value
}

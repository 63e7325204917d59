import { availableParallelism } from 'node:os'
import { type Lane, type NativeMemory, offThread, restoreSignals } from '@shoal/ffi'

/** Calls that run one after another in one native job. */
export interface CallStep {
  /** The calls; each returns a status. */
  readonly calls: readonly (() => number)[]
  /** Memory that the calls use. */
  readonly keep: readonly NativeMemory[]
}

/** A sequence of steps: it receives the statuses of each step and returns the result. */
export type Calls<T> = Generator<CallStep, T, readonly number[]>

/** Runs all calls of a sequence on this thread. */
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

// A compiler uses a whole processor. One processor stays free for the event loop.
const most = Math.max(1, availableParallelism() - 1)
let running = 0
const waiting: (() => void)[] = []

/** Options of {@link runOffThread}. */
export interface OffThread {
  /** Lane to run on. */
  readonly lane?: Lane
  /** When it fires, a sequence that has not started is cancelled. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Runs each step of a sequence on a native thread, while the event loop continues.
 *
 * At most one less than the number of processors run at the same time.
 */
export async function runOffThread<T>(sequence: Calls<T>, { lane, signal }: OffThread = {}): Promise<T> {
  if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
  else running += 1
  try {
    signal?.throwIfAborted()
    return await runSteps(sequence, lane)
  } finally {
    // The next waiting sequence takes over the place.
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

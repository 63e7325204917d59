import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'

const attempts = 10

/** What a wait cost the event loop of this thread, in milliseconds. */
export interface LoopDelay {
  readonly waited: number
  /** Times between two turns of a timer of one millisecond: that millisecond is part of them. */
  readonly p99: number
  readonly longest: number
}

/** The bar of an event loop that is free: 99 of 100 turns at most 5 ms late, none more than 50 ms. */
export function isFree({ p99, longest }: LoopDelay): boolean {
  return p99 <= 5 && longest <= 50
}

/**
 * How late the event loop is while what `queue` has queued is awaited by `wait`. Other processes on this machine make it late
 * as well, whatever is awaited, so the first of several waits that left it free counts, or else the last.
 */
export async function delayWhile(queue: () => Promise<void>, wait: () => Promise<unknown>): Promise<LoopDelay> {
  for (let attempt = 1; ; attempt += 1) {
    await queue()
    const delay = await delayOf(wait)
    if (isFree(delay) || attempt === attempts) return delay
  }
}

/** How late the event loop is while `wait` runs. */
export async function delayOf(wait: () => Promise<unknown>): Promise<LoopDelay> {
  const monitor = monitorEventLoopDelay({ resolution: 1 })
  monitor.enable()
  // The timer has to run before a stall, and again after it, to see one that begins or ends the wait.
  await pause(5)
  const start = performance.now()
  await wait()
  const waited = performance.now() - start
  await pause(5)
  monitor.disable()
  return { waited, p99: monitor.percentile(99) / 1e6, longest: monitor.max / 1e6 }
}

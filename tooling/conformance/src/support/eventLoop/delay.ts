import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'

/** How late an event loop was, in milliseconds. */
export interface LoopDelay {
  readonly waited: number
  /** Times between two turns of a timer of one millisecond: that millisecond is part of them. */
  readonly p99: number
  readonly longest: number
}

/** The timer that measures has to run before a stall, and again after it, to see one that begins or ends the wait. */
const margin = 5

/** Measures from now until the end is asked for. */
export async function startMeasuring(): Promise<() => Promise<LoopDelay>> {
  const monitor = monitorEventLoopDelay({ resolution: 1 })
  monitor.enable()
  await pause(margin)
  const start = performance.now()
  return async () => {
    const waited = performance.now() - start
    await pause(margin)
    monitor.disable()
    return { waited, p99: monitor.percentile(99) / 1e6, longest: monitor.max / 1e6 }
  }
}

/** How late the event loop of this thread is while `wait` runs. */
export async function delayOf(wait: () => Promise<unknown>): Promise<LoopDelay> {
  const end = await startMeasuring()
  await wait()
  return end()
}

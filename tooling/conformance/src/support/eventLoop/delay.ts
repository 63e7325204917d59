import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'

/** How late an event loop was, in milliseconds. */
export interface LoopDelay {
  readonly waited: number
  /** The time between two turns of a timer of one millisecond. That millisecond is included. */
  readonly p99: number
  readonly longest: number
}

/** The timer must run before and after a stall, to see a stall at the start or end of the wait. */
const margin = 5

/** Starts to measure. The returned function ends the measurement. */
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

/** Measures how late this thread's event loop is while `wait` runs. */
export async function delayOf(wait: () => Promise<unknown>): Promise<LoopDelay> {
  const end = await startMeasuring()
  await wait()
  return end()
}

import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Delays of the event loop during a wait, in milliseconds. */
export interface Delay {
  readonly waited: number
  readonly median: number
  readonly percentile99: number
  readonly longest: number
  readonly samples: number
}

const nanoseconds = 1e6

/** Measures the event loop while it awaits the promise that `work` returns. */
export async function measureDelay(work: () => Promise<unknown>): Promise<Delay> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const start = performance.now()
  await work()
  const waited = performance.now() - start
  // A stall is only recorded when the timer fires again.
  await sleep(50)
  delay.disable()
  return {
    waited,
    median: delay.percentile(50) / nanoseconds,
    percentile99: delay.percentile(99) / nanoseconds,
    longest: delay.max / nanoseconds,
    samples: delay.count,
  }
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

import { monitorEventLoopDelay } from 'node:perf_hooks'

/** How late the event loop was while something was awaited, in milliseconds. */
export interface Delay {
  readonly waited: number
  readonly median: number
  readonly percentile99: number
  readonly longest: number
  readonly samples: number
}

const nanoseconds = 1e6

/** Measures the event loop while the promise that `work` returns is awaited. */
export async function measureDelay(work: () => Promise<unknown>): Promise<Delay> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const start = performance.now()
  await work()
  const waited = performance.now() - start
  // The timer that measures sees a stall only when it fires again.
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

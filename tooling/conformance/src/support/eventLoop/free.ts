import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { CaseContext } from '../../suite.js'
import { Child } from '../child.js'
import { delayOf, type LoopDelay } from './delay.js'

const mostP99 = 5
const mostLongest = 50
const attempts = 10
const idleScript = fileURLToPath(new URL('./idleProcess.js', import.meta.url))

/**
 * Checks that the event loop runs freely while what `queue` has queued is awaited by `wait`: 99 of 100 turns at most 5 ms
 * late, none more than 50 ms. A machine with other work makes every event loop late. So where this one was, it is measured
 * again beside a process that does nothing, and must not have been later than that one. The two are never late to the same
 * microsecond: one of several attempts has to show it.
 * @throws AssertionError when it was later every time.
 */
export async function assertFreeLoop(
  t: Pick<CaseContext, 'defer'>,
  queue: () => Promise<void>,
  wait: () => Promise<unknown>,
): Promise<LoopDelay> {
  await queue()
  const alone = await delayOf(wait)
  if (isWithin(alone, mostP99, mostLongest)) return alone
  const idle = Child.start(t, idleScript)
  const seen = [told(alone)]
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    await idle.run('begin')
    await queue()
    const delay = await delayOf(wait)
    const beside = (await idle.run('end')) as LoopDelay
    if (isWithin(delay, Math.max(mostP99, beside.p99), Math.max(mostLongest, beside.longest))) return delay
    seen.push(`${told(delay)}, of an idle process ${told(beside)}`)
  }
  assert.fail(`the event loop was not free:\n${seen.join('\n')}`)
}

function isWithin({ p99, longest }: LoopDelay, p99Limit: number, longestLimit: number): boolean {
  return p99 <= p99Limit && longest <= longestLimit
}

/** A delay as text. */
export function told({ p99, longest }: LoopDelay): string {
  return `99th percentile ${p99.toFixed(2)} ms, longest stall ${longest.toFixed(2)} ms`
}

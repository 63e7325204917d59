import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { CaseContext } from '../../suite.js'
import { Child } from '../child.js'
import { delayOf, type LoopDelay } from './delay.js'

/** Milliseconds, as of {@link LoopDelay}. */
const mostP99 = 5
const mostLongest = 50
const attempts = 60
const idleScript = fileURLToPath(new URL('./idleProcess.js', import.meta.url))

/**
 * Checks that the event loop runs freely while what `queue` has queued is awaited by `wait`: 99 of 100 turns at most 5 ms
 * late, none more than 50 ms. A machine with other work makes every event loop late, so a process that does nothing is
 * measured at the same time: only where that one was more than half as late as allowed, a measurement that is too late says
 * nothing, and is made again.
 * @throws AssertionError when the loop was too late on a calm machine, or the machine was never calm.
 */
export async function assertFreeLoop(
  t: Pick<CaseContext, 'defer'>,
  queue: () => Promise<void>,
  wait: () => Promise<unknown>,
): Promise<LoopDelay> {
  const idle = Child.start(t, idleScript)
  let seen = ''
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    await idle.run('begin')
    await queue()
    const delay = await delayOf(wait)
    const beside = (await idle.run('end')) as LoopDelay
    if (isWithin(delay, mostP99, mostLongest)) return delay
    seen = `${told(delay)}; of an idle process ${told(beside)}`
    if (isWithin(beside, mostP99 / 2, mostLongest / 2)) assert.fail(`the event loop was not free: ${seen}`)
  }
  assert.fail(`this machine was never calm enough to tell whether the event loop is free: ${seen}`)
}

function isWithin({ p99, longest }: LoopDelay, p99Limit: number, longestLimit: number): boolean {
  return p99 <= p99Limit && longest <= longestLimit
}

/** A delay as text. */
export function told({ p99, longest }: LoopDelay): string {
  return `99th percentile ${p99.toFixed(2)} ms, longest stall ${longest.toFixed(2)} ms`
}

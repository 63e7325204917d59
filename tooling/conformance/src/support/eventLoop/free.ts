import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { CaseContext } from '../../suite.js'
import { Child } from '../child.js'
import { delayOf, type LoopDelay } from './delay.js'

/** The most milliseconds of {@link LoopDelay}. */
const usualLimits = { p99: 5, longest: 50 }
/** The number of equal results that decide: the majority of five attempts. */
const decisive = 3
const attempts = 30
const idleScript = fileURLToPath(new URL('./idleProcess.js', import.meta.url))

/**
 * Checks that the event loop runs freely while `wait` awaits the work that `queue` has queued. By default 99 of 100
 * turns are at most 5 ms late, and none more than 50 ms. Other work on a machine delays every event loop, so an idle
 * process is measured at the same time. An attempt counts only if the idle process was at most half as late as allowed.
 * The majority of five such attempts decides. If the machine is too busy for them, the case is skipped.
 * @throws AssertionError if the loop was too late in most attempts
 */
export async function assertFreeLoop(
  t: Pick<CaseContext, 'defer' | 'skip'>,
  queue: () => Promise<void>,
  wait: () => Promise<unknown>,
  limits: Pick<LoopDelay, 'p99' | 'longest'> = usualLimits,
): Promise<LoopDelay> {
  const idle = Child.start(t, idleScript)
  let free = 0
  let late = 0
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    await idle.run('begin')
    await queue()
    const delay = await delayOf(wait)
    const beside = (await idle.run('end')) as LoopDelay
    if (!isWithin(beside, limits.p99 / 2, limits.longest / 2)) continue
    if (isWithin(delay, limits.p99, limits.longest)) free += 1
    else late += 1
    if (free === decisive) return delay
    const seen = `${told(delay)}; of an idle process ${told(beside)}`
    if (late === decisive) assert.fail(`the event loop was not free in ${late} of ${late + free} attempts: ${seen}`)
  }
  return t.skip(`this machine was not calm often enough: ${free + late} of ${attempts} attempts tell anything`)
}

function isWithin({ p99, longest }: LoopDelay, p99Limit: number, longestLimit: number): boolean {
  return p99 <= p99Limit && longest <= longestLimit
}

/** Formats a delay as text. */
export function told({ p99, longest }: LoopDelay): string {
  return `99th percentile ${p99.toFixed(2)} ms, longest stall ${longest.toFixed(2)} ms`
}

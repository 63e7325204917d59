import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSharedMemoryGone, sharedMemory } from '../../support/leftovers.js'
import { startPes } from './matrix.js'
import type { Outcome, Start } from './peProcess.js'

/**
 * The milliseconds after which the survivors must give up, and the further milliseconds that they may need to report
 * it.
 */
const timeLimitOf = (t: CaseContext): number => (t.isSoftware ? 2000 : 8000)
const grace = 10_000
const bytes = 4096

/** @param mayEnd whether the PE may also end without an error: finalize returns no status */
function checkOutcomes(t: CaseContext, outcomes: readonly Outcome[], mayEnd: boolean): void {
  for (const { name, message, milliseconds } of outcomes) {
    const isTold = name === 'TimeoutError' || name === 'StatusError'
    assert.ok(isTold || (mayEnd && name === undefined), `${name}: ${message}`)
    assert.ok(milliseconds < timeLimitOf(t) + grace, `${milliseconds} ms`)
  }
  t.note(`told after ${outcomes.map(({ milliseconds }) => milliseconds.toFixed(0)).join(', ')} ms`)
}

const neverComes: ConformanceCase = {
  name: 'a PE is killed before init: the others say so in time, and end',
  requires: { ranks: 2 },
  timeout: 120_000,
  async run(t) {
    const before = sharedMemory(t, 'nvshmem')
    const worldSize = t.isSoftware ? 3 : Math.min(4, t.devices.length)
    const pes = startPes(t, worldSize)
    const id = (await pes[0]?.run('createId')) as string
    await pes[worldSize - 1]?.kill()
    const others = pes.slice(0, -1)
    const timeout = timeLimitOf(t)
    const outcomes = await Promise.all(
      others.map((child, rank) =>
        child.run('initIfPossible', { id, rank, worldSize, bytes, timeout } satisfies Start & { timeout: number }),
      ),
    )
    checkOutcomes(t, outcomes as Outcome[], false)
    for (const child of others) assert.deepEqual(await child.leave(), { code: 0, signal: null })
    await assertSharedMemoryGone(t, 'nvshmem', before)
  },
}

function killedCase(way: string, when: string): ConformanceCase {
  return {
    name: `a PE is killed while the others wait ${when}: they say so in time, and end`,
    requires: { ranks: 2 },
    timeout: 120_000,
    async run(t) {
      const before = sharedMemory(t, 'nvshmem')
      const worldSize = t.isSoftware ? 3 : Math.min(4, t.devices.length)
      const pes = startPes(t, worldSize)
      const id = (await pes[0]?.run('createId')) as string
      await Promise.all(pes.map((child, rank) => child.run('init', { id, rank, worldSize, bytes } satisfies Start)))
      const killedPe = t.random.integer(0, worldSize - 1)
      const others = pes.filter((_, rank) => rank !== killedPe)
      const waiting = others.map((child) => child.run('waitIfPossible', { way, timeout: timeLimitOf(t) }))
      await sleep(500)
      assert.deepEqual(await pes[killedPe]?.kill(), { code: null, signal: 'SIGKILL' })
      checkOutcomes(t, (await Promise.all(waiting)) as Outcome[], way === 'finalize')
      for (const child of others) assert.deepEqual(await child.leave(), { code: 0, signal: null })
      await assertSharedMemoryGone(t, 'nvshmem', before)
    },
  }
}

export const killedSuite: Suite = {
  name: 'nvshmem killed',
  cases: [
    neverComes,
    killedCase('barrier', 'in a barrier'),
    killedCase('reduce', 'in a collective'),
    killedCase('finalize', 'in finalize'),
  ],
}

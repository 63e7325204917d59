import { type Job, RanksLostError } from '@shoal/launch'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { serve, sleep, type TestRendezvous } from './support/jobs.js'

const steps = 12

interface Outcome {
  readonly rank: number
  readonly worldSize: number
  readonly sums: readonly number[]
}

/**
 * The program of one rank: the same steps on all ranks. After each loss it continues from the last step that all have
 * completed.
 */
async function work(rendezvous: TestRendezvous, original: number, pace: number): Promise<Outcome> {
  let job = await rendezvous.join(original)
  const sums: number[] = []
  for (;;) {
    try {
      while (sums.length < steps) sums.push(await step(job, sums.length, pace))
      await job.barrier('done')
      return { rank: job.rank, worldSize: job.worldSize, sums }
    } catch (error) {
      if (!(error instanceof RanksLostError)) throw error
      job = await agree(job, sums)
    }
  }
}

async function step(job: Job, index: number, pace: number): Promise<number> {
  if (pace > 0) await sleep((pace * (index + 1) * (job.rank + 1)) % 7)
  const kind = index % 3
  if (kind === 0) await job.barrier(`step ${index}`)
  const root = index % job.worldSize
  if (kind === 1) return (await job.share('made', () => Uint8Array.of(index), { root }))[0]!
  const values = await job.gather(`step ${index}`, Uint8Array.of(index))
  if (values.length !== job.worldSize) throw new Error(`${values.length} values of ${job.worldSize} ranks`)
  return values.reduce((sum, [value]) => sum + value!, 0) / job.worldSize
}

/** Agrees on the remaining ranks. Some may have completed a step that others have not. */
async function agree(old: Job, sums: number[]): Promise<Job> {
  let job = old
  for (;;) {
    job = await job.survivors()
    try {
      const done = await job.gather('steps', Uint8Array.of(sums.length))
      sums.length = Math.min(...done.map(([count]) => count!))
      return job
    } catch (error) {
      if (!(error instanceof RanksLostError)) throw error
    }
  }
}

test('after random deaths of ranks the survivors continue, agree and never hang', async () => {
  const scenario = fc.record({
    worldSize: fc.integer({ min: 2, max: 6 }),
    pace: fc.integer({ min: 0, max: 5 }),
    deaths: fc.array(fc.record({ rank: fc.nat(5), after: fc.nat(60) }), { maxLength: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(scenario, async ({ worldSize, pace, deaths }) => {
      const rendezvous = await serve(worldSize)
      // The last rank must survive.
      const killed = new Map(deaths.filter(({ rank }) => rank < worldSize - 1).map(({ rank, after }) => [rank, after]))
      const left = Array.from({ length: worldSize }, (_, rank) => rank).filter((rank) => !killed.has(rank))
      const running = Array.from({ length: worldSize }, (_, rank) => work(rendezvous, rank, pace))
      // The results of dead ranks do not matter; their programs never continue.
      for (const rank of killed.keys()) running[rank]!.catch(() => undefined)
      await expect.poll(() => rendezvous.server.connected.length, { interval: 2 }).toBe(worldSize)
      await sleep(10)
      for (const [rank, after] of [...killed].sort((a, b) => a[1] - b[1])) {
        await sleep(after / 4)
        rendezvous.server.gone(rank, 'lost')
      }
      const outcomes = await Promise.all(left.map((rank) => running[rank]!))
      rendezvous.server.dispose()
      const expected = Array.from({ length: steps }, (_, index) => index)
      for (const { sums } of outcomes) expect(sums).toEqual(expected)
      const sizes = new Set(outcomes.map(({ worldSize: size }) => size))
      expect(sizes.size).toBe(1)
      expect(outcomes.map(({ rank }) => rank)).toEqual(left.map((rank) => outcomes[left.indexOf(rank)]!.rank))
    }),
    { numRuns: 40, endOnFailure: true },
  )
})

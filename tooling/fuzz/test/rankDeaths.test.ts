import { expect, test } from 'vitest'
import { planOf, stages, ways } from '../src/ranks/plan.js'
import { runRankDeaths } from '../src/ranks/rankDeaths.js'

test('a seed determines a case, and forty consecutive seeds cover every way at every stage', () => {
  expect(planOf(77, 3000)).toEqual(planOf(77, 3000))
  const plans = Array.from({ length: 40 }, (_, index) => planOf(1234 + index, 3000))
  expect(new Set(plans.map(({ way, stage }) => `${way} ${stage}`)).size).toBe(ways.length * stages.length)
  const sizes = Array.from({ length: 400 }, (_, seed) => planOf(seed, 3000).worldSize)
  expect([...new Set(sizes)].sort()).toEqual([2, 3, 4, 5, 6, 7, 8])
})

test('survivors report dead ranks in ten cases of a new seed', async () => {
  // Each run draws other ways and stages. Timing is tested by hand on an idle machine.
  const seed = Math.floor(Math.random() * 1e6)
  const failures: string[] = []
  for (let index = 0; index < 10; index += 1) {
    const result = await runRankDeaths({ seed: seed + index * 5, count: 1, slack: 300_000 })
    expect(result.ran).toBe(1)
    failures.push(...result.failures)
  }
  expect(failures).toEqual([])
})

test('a campaign ends when it is aborted', async () => {
  const { ran, failures, late } = await runRankDeaths({ seed: 1, count: 5, signal: AbortSignal.abort() })
  expect({ ran, failures, late }).toEqual({ ran: 0, failures: [], late: 0 })
})

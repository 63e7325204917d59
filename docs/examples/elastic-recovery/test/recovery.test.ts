import { expect, test } from 'vitest'
import { startRanks } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)
const steps = 10

/**
 * How many ranks there may have been in each step. Who dies in a step was in the one before; but the others may learn of
 * it while they still wait for that one, and then do it again without.
 */
function possibleCounts(ranks: number, deathSteps: readonly number[]): string[] {
  const [first, ...later] = deathSteps
  const same = (length: number): number[] => Array.from({ length }, () => ranks)
  if (first === undefined) return [same(steps).join(' ')]
  const ends = first === 0 ? [0] : [first - 1, first]
  return ends.flatMap((end) => {
    const rest = possibleCounts(ranks - 1, later).map((counts) => counts.split(' ').slice(end))
    return rest.map((counts) => [...same(end), ...counts].join(' '))
  })
}

test('what the test expects', () => {
  expect(possibleCounts(3, [])).toEqual(['3 3 3 3 3 3 3 3 3 3'])
  expect(possibleCounts(2, [0])).toEqual(['1 1 1 1 1 1 1 1 1 1'])
  expect(possibleCounts(4, [2, 6])).toEqual([
    '4 3 3 3 3 2 2 2 2 2',
    '4 3 3 3 3 3 2 2 2 2',
    '4 4 3 3 3 2 2 2 2 2',
    '4 4 3 3 3 3 2 2 2 2',
  ])
})

test.each([
  [3, []],
  [3, ['1@4']],
  [4, ['0@2', '3@6']],
  [2, ['0@0']],
])('%i ranks, killed: %j', { timeout: 60_000 }, async (ranks, deaths: readonly string[]) => {
  const kills = deaths.flatMap((at) => ['--kill', at])
  const { code, output, errors } = await startRanks(ranks, main, kills, ['--on-failure', 'continue']).end
  const told = [...output.matchAll(/10 steps, ([\d ]+) ranks in them, 0 of 1000 elements wrong/g)].map(([, one]) => one)
  expect(told, output + errors).toHaveLength(ranks - deaths.length)
  const deathSteps = deaths.map((at) => Number(at.split('@')[1]))
  expect(possibleCounts(ranks, deathSteps), output + errors).toContain(told[0])
  // All that are left agree on who was there.
  expect(new Set(told).size, output + errors).toBe(1)
  expect(code, output + errors).toBe(0)
})

import { expect, test } from 'vitest'
import { startRanks } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)

test.each([
  [3, [], '3 3 3 3 3 3 3 3 3 3'],
  [3, ['1@4'], '3 3 3 3 2 2 2 2 2 2'],
  [4, ['0@2', '3@6'], '4 4 3 3 3 3 2 2 2 2'],
  [2, ['0@0'], '1 1 1 1 1 1 1 1 1 1'],
])('%i ranks finish although these are killed: %j', { timeout: 60_000 }, async (ranks, deaths, counts) => {
  const kills = deaths.flatMap((at) => ['--kill', at])
  const { code, output, errors } = await startRanks(ranks, main, kills, ['--on-failure', 'continue']).end
  const ends = output.match(new RegExp(`10 steps, ${counts} ranks in them, 0 of 1000 elements wrong`, 'g'))
  expect(ends, output + errors).toHaveLength(ranks - deaths.length)
  expect(code, output + errors).toBe(0)
})

test.each([
  [['--kill', '1'], "--kill takes RANK@STEP, with a step from 0 to 9; got '1'"],
  [['--kill', '1@10'], "got '1@10'"],
  [['--kil', '1@4'], "Unknown option '--kil'"],
])('the program refuses %j', async (words, message) => {
  const { code, errors } = await startRanks(2, main, words).end
  expect(errors).toContain(message)
  expect(code).toBe(1)
})

import { expect, test } from 'vitest'
import { atLeast, atMost, leastBandwidth, slowest } from '../src/bars.js'
import type { Outcome } from '../src/options.js'
import { joinOutcomes } from '../src/processRepeats.js'
import { series } from '../src/statistics.js'
import { joinPasses, type Row, ratioBetween, type Subject, takeRounds, takeTurns } from '../src/turns.js'

/** A subject that answers with the numbers in the list, in order. */
function subject(name: string, cases: readonly string[], answers: number[], asked: string[]): Subject {
  return {
    name,
    cases,
    measure: (test, count) => {
      asked.push(`${name} ${test} ${count}`)
      return answers.shift() ?? Number.NaN
    },
  }
}

test('subjects alternate in every case, after one uncounted run', async () => {
  const asked: string[] = []
  const about = { unit: 'µs', count: 5, loops: 1 }
  const cases = { a: { ...about, title: 'A' }, b: { ...about, title: 'B' }, none: { ...about, title: 'nobody has it' } }
  // In the order of the requests: both cases for the warm-up, then both cases in each round.
  const c = subject('C', ['a', 'b'], [100, 100, 10, 1, 20, 2], asked)
  const shoal = subject('shoal', ['a'], [100, 20, 30], asked)
  const rows = await takeTurns(cases, [c, shoal], 2)
  const round = ['C a 5', 'shoal a 5', 'C b 5']
  expect(asked).toEqual([...round, ...round, 'shoal a 5', 'C a 5', 'C b 5'])
  expect(rows.map(({ case: name, title }) => [name, title])).toEqual([
    ['a', 'A'],
    ['b', 'B'],
  ])
  expect(rows[0]?.subjects['C']?.rounds).toEqual([10, 20])
  expect(rows[0]?.subjects['shoal']?.rounds).toEqual([20, 30])
  expect(rows[0]?.ratioToC).toEqual({ C: 1, shoal: Math.sqrt((20 / 10) * (30 / 20)) })
  expect(rows[1]?.subjects).not.toHaveProperty('shoal')
  expect(ratioBetween(rows[1], 'shoal', 'C')).toBeNaN()
})

test('a turn reports the best of its loops', async () => {
  const asked: string[] = []
  const cases = { a: { title: 'A', unit: 'µs', count: 1, loops: 2, turns: 2 } }
  let rounds = 0
  const beforeRound = () => {
    rounds += 1
  }
  const rows = await takeTurns(cases, [subject('C', ['a'], [0, 5, 4, 2, 3, 7, 8, 9, 1], asked)], 2, { beforeRound })
  expect(rows[0]?.subjects['C']?.rounds).toEqual([4, 2, 7, 1])
  // Before the warm-up, and before each round.
  expect(rounds).toBe(3)
})

test('a single round has no warm-up and one loop', async () => {
  const asked: string[] = []
  const cases = { a: { title: 'A', unit: 'µs', count: 1, loops: 3 } }
  const rows = await takeTurns(cases, [subject('C', ['a'], [5, 4], asked)], 1, { warmUps: 3 })
  expect(rows[0]?.subjects['C']?.rounds).toEqual([5])
  const answers = [5, 4]
  expect(await takeRounds({ a: () => answers.shift() }, 1)).toEqual({ a: [5] })
  const others = [5, 4, 3]
  expect(await takeRounds({ a: () => others.shift() }, 2)).toEqual({ a: [4, 3] })
})

test('passes are joined round by round, and bars use the worst row', async () => {
  const cases = {
    small: { title: 'S', unit: 'µs', count: 1, loops: 1 },
    large: { title: 'L', unit: 'µs', count: 1, loops: 1 },
  }
  const pass = (c: number, shoal: number, again: number) =>
    takeTurns(
      cases,
      [
        subject('C', ['small', 'large'], [c, 10], []),
        subject('shoal', ['small', 'large'], [shoal, 20], []),
        subject('C again', ['small', 'large'], [again, 10], []),
      ],
      1,
    )
  const [one, other] = [await pass(10, 11, 12), await pass(10, 13, 8)]
  const rows = joinPasses([one, other])
  expect(rows[0]?.subjects['shoal']?.rounds).toEqual([11, 13])
  expect(slowest('time', rows, 1.1)).toMatchObject([{ value: 2, ofCAgain: 1, met: false, side: 'at most' }])
  expect(slowest('time', rows.slice(0, 1), 1.3)).toMatchObject([{ value: expect.closeTo(1.2), met: true }])
  expect(leastBandwidth('bandwidth', rows, 0.5)).toMatchObject([{ value: 0.5, met: true, side: 'at least' }])
  expect(slowest('time', [], 1)).toEqual([])
  expect(() => joinPasses([one, other.slice(1)])).toThrow('small is missing in a pass')
})

test('cases that compile at first use are warmed up before the rounds', async () => {
  const asked: string[] = []
  const cases = { a: { title: 'A', unit: 'µs', count: 1, loops: 1 } }
  const rows = await takeTurns(cases, [subject('C', ['a'], [9, 8, 7, 2, 3], asked)], 2, { warmUps: 3 })
  expect(rows[0]?.subjects['C']?.rounds).toEqual([2, 3])
})

test('rounds of several processes are combined by the median of their ratios', () => {
  const process = (c: readonly number[], shoal: readonly number[], ratio: number): Outcome => ({
    results: {
      devices: 1,
      cases: [
        {
          case: 'a',
          title: 'A',
          unit: 'ns',
          subjects: { C: series(c), shoal: series(shoal) },
          ratioToC: { C: 1, shoal: ratio },
        },
      ],
    },
    bars: [atMost('time', { value: ratio, ofCAgain: ratio / 2 }, 1.2), atLeast('bandwidth', ratio, 1.2, ' GB/s')],
  })
  // The C program of the first process has a slow processor; in the second process, Shoal has it.
  const joined = joinOutcomes([
    process([20, 20], [11, 11], 0.55),
    process([10], [22], 2.2),
    process([10, 10], [12, 12], 1.2),
  ])
  expect(joined.results).toMatchObject({ devices: 1, cases: [{ ratioToC: { C: 1, shoal: 1.2 } }] })
  const [row] = (joined.results as { cases: Row[] }).cases
  expect(row?.subjects['shoal']?.rounds).toEqual([11, 11, 22, 12, 12])
  expect(joined.bars).toMatchObject([
    { what: 'time', value: 1.2, ofCAgain: 0.6, met: true },
    { what: 'bandwidth', value: 1.2, met: true, unit: ' GB/s' },
  ])
  expect(joinOutcomes([process([1], [1], 1), process([1], [2], 2), process([1], [2], 2)]).bars).toMatchObject([
    { met: false },
    { met: true },
  ])
})

test('results of different measurements are not joined', () => {
  const outcome = (names: readonly string[], bars: readonly string[]): Outcome => ({
    results: [
      {
        case: 'a',
        title: 'A',
        unit: 'ns',
        subjects: Object.fromEntries(names.map((name) => [name, series([1])])),
        ratioToC: Object.fromEntries(names.map((name) => [name, 1])),
      },
    ],
    bars: bars.map((what) => atMost(what, 1, 2)),
  })
  const whole = outcome(['C', 'CuPy'], ['time'])
  expect(joinOutcomes([whole, whole]).results).toMatchObject([{ subjects: { CuPy: { rounds: [1, 1] } } }])
  expect(() => joinOutcomes([whole, outcome(['C'], ['time'])])).toThrow('a of CuPy is missing in a process')
  expect(() => joinOutcomes([whole, outcome(['C', 'CuPy'], [])])).toThrow('time is missing in a process')
  expect(() => joinOutcomes([{ results: { packages: [] }, bars: [] }])).toThrow('--processes')
})

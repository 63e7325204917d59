import { number, table } from '@shoal/cli/bench'
import { medianDifference, medianRatio, type Series, series } from './statistics.js'

/** One side of a comparison. */
export interface Subject {
  readonly name: string
  /** The cases that it supports. */
  readonly cases: readonly string[]
  /** Runs the case `count` times and returns the time per run, in the unit of the case. */
  readonly measure: (test: string, count: number) => number | Promise<number>
}

/** A measured case. */
export interface Case {
  readonly title: string
  readonly unit: string
  /** The number of runs in one loop. */
  readonly count: number
  /** A figure is the best of this number of loops. */
  readonly loops: number
  /** Figures per subject in a round; default 1. */
  readonly turns?: number
}

/** The figures of one case. */
export interface Row {
  readonly case: string
  readonly title: string
  readonly unit: string
  readonly subjects: Readonly<Record<string, Series>>
  readonly ratioToC: Readonly<Record<string, number>>
}

/** A subject that runs loops in this process. `time` times one loop. */
export function subjectOf<Loop>(
  name: string,
  loops: Readonly<Record<string, Loop>>,
  time: (loop: Loop, count: number) => number | Promise<number>,
): Subject {
  return { name, cases: Object.keys(loops), measure: (test, count) => time(loops[test] as Loop, count) }
}

/**
 * A subject in a separate process, which gets a request for each loop. Its answers are in `perUnit` of the case's unit.
 */
export function subjectIn(
  program: { measure(request: string): Promise<number> },
  name: string,
  cases: readonly string[],
  requestFor: (test: string, count: number) => string,
  perUnit = 1,
): Subject {
  return { name, cases, measure: async (test, count) => (await program.measure(requestFor(test, count))) / perUnit }
}

/** The list for even rounds, and its reverse for odd rounds, so that another subject goes first in each round. */
export function inTurn<T>(list: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? list : [...list].reverse()
}

/**
 * A single round only shows that everything runs. Its figures mean nothing, so it has no warm-up and no repetitions.
 */
export const isTrial = (rounds: number): boolean => rounds === 1

/** Calls each function once per round, after an uncounted first call. Returns their results. */
export async function takeRounds<T>(
  runs: Readonly<Record<string, () => T | Promise<T>>>,
  rounds: number,
): Promise<Record<string, T[]>> {
  const given = Object.fromEntries(Object.keys(runs).map((name): [string, T[]] => [name, []]))
  // The first call of each finds cold caches.
  if (!isTrial(rounds)) for (const run of Object.values(runs)) await run()
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, run] of inTurn(Object.entries(runs), round)) given[name]?.push(await run())
  }
  return given
}

export interface TurnOptions {
  readonly beforeRound?: () => void
  /** The number of warm-up loops per subject and case, within {@link warmUpMilliseconds}; default 1. */
  readonly warmUps?: number
}

/**
 * Alternates the subjects in each of their cases. A round goes through all cases. So a disturbance of some seconds
 * spoils a few rounds of each case, but no median.
 */
export async function takeTurns(
  cases: Readonly<Record<string, Case>>,
  subjects: readonly Subject[],
  rounds: number,
  { beforeRound = () => undefined, warmUps = 1 }: TurnOptions = {},
): Promise<Row[]> {
  const measured = Object.entries(cases).flatMap(([test, about]) => {
    const taking = subjects.filter((subject) => subject.cases.includes(test))
    const figures = new Map<string, number[]>(taking.map(({ name }) => [name, []]))
    return taking.length === 0 ? [] : [{ ...about, test, taking, figures }]
  })
  beforeRound()
  for (const { test, count, taking } of isTrial(rounds) ? [] : measured)
    for (const subject of taking) await warmUp(subject, test, count, warmUps)
  for (let round = 0; round < rounds; round += 1) {
    beforeRound()
    for (const { test, count, loops, turns = 1, taking, figures } of measured) {
      for (let turn = 0; turn < turns; turn += 1) {
        for (const subject of inTurn(taking, round + turn))
          figures.get(subject.name)?.push(await bestOf(subject, test, count, isTrial(rounds) ? 1 : loops))
      }
    }
  }
  return measured.map(({ test, title, unit, figures }) => rowOf({ case: test, title, unit }, figures))
}

/** In a program that makes a call often, V8 has compiled it, which takes some ten thousand calls. */
export const compiled = { warmUps: 40 }
const warmUpMilliseconds = 300

async function warmUp({ measure }: Subject, test: string, count: number, warmUps: number): Promise<void> {
  const end = performance.now() + warmUpMilliseconds
  for (let turn = 0; turn === 0 || (turn < warmUps && performance.now() < end); turn += 1) await measure(test, count)
}

/** Joins the tables of several passes: the rounds of each row follow one another. */
export function joinPasses(passes: readonly (readonly Row[])[]): Row[] {
  const [first = []] = passes
  return first.map((row) => {
    const parts = passes.map((rows) => {
      const part = rows.find((other) => other.case === row.case)
      if (part === undefined) throw new Error(`${row.case} is missing in a pass`)
      return part
    })
    const roundsOf = (name: string): number[] => parts.flatMap((part) => [...(part.subjects[name]?.rounds ?? [])])
    return rowOf(row, new Map(Object.keys(row.subjects).map((name) => [name, roundsOf(name)])))
  })
}

function rowOf(about: Pick<Row, 'case' | 'title' | 'unit'>, rounds: ReadonlyMap<string, readonly number[]>): Row {
  const c = rounds.get('C') ?? []
  return {
    case: about.case,
    title: about.title,
    unit: about.unit,
    subjects: Object.fromEntries([...rounds].map(([name, values]) => [name, series(values)])),
    ratioToC: Object.fromEntries([...rounds].map(([name, values]) => [name, medianRatio(values, c)])),
  }
}

async function bestOf({ measure }: Subject, test: string, count: number, loops: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let loop = 0; loop < loops; loop += 1) best = Math.min(best, await measure(test, count))
  return best
}

/** The ratio of two subjects' times, by rounds; NaN if one of them has none. */
export function ratioBetween(row: Row | undefined, name: string, other: string): number {
  const [ours, theirs] = [row?.subjects[name], row?.subjects[other]]
  return ours === undefined || theirs === undefined ? Number.NaN : medianRatio(ours.rounds, theirs.rounds)
}

/** The difference between two subjects' times, by rounds; NaN if one of them has none. */
export function differenceBetween(row: Row | undefined, name: string, other: string): number {
  const [ours, theirs] = [row?.subjects[name], row?.subjects[other]]
  return ours === undefined || theirs === undefined ? Number.NaN : medianDifference(ours.rounds, theirs.rounds)
}

/** Prints medians, with the ratio to C in parentheses. */
export function printRows(rows: readonly Row[], names: readonly string[]): void {
  const taking = names.filter((name) => rows.some((row) => name in row.subjects))
  const cell = (row: Row, name: string): string => {
    const figures = row.subjects[name]
    if (figures === undefined) return '–'
    const ratio = row.ratioToC[name] ?? Number.NaN
    return name === 'C' || Number.isNaN(ratio) ? number(figures.median) : `${number(figures.median)} (${number(ratio)})`
  }
  console.log(
    table(
      ['', 'unit', ...taking],
      rows.map((row) => [row.title, row.unit, ...taking.map((name) => cell(row, name))]),
    ),
  )
}

/** Prints the bandwidth of each subject. The times of the rows are in microseconds. */
export function printBandwidths(rows: readonly Row[], bytesOf: (row: Row) => number, unit = 'GB/s'): void {
  for (const row of rows) {
    const each = Object.entries(row.subjects).map(
      ([name, { median }]) => `${name} ${number(bytesOf(row) / median / 1000)}`,
    )
    console.log(`${row.title}, ${unit}: ${each.join(', ')}`)
  }
}

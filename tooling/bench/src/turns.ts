import { number, table } from './bars.js'
import { medianRatio, type Series, series } from './statistics.js'

/** One side of a comparison. */
export interface Entrant {
  readonly name: string
  /** What it can be asked for. */
  readonly cases: readonly string[]
  /** Does something `count` times and gives back the time of one, in the unit of the case. */
  readonly ask: (test: string, count: number) => number | Promise<number>
}

/** What is asked for. */
export interface Case {
  readonly title: string
  readonly unit: string
  /** How often in one loop. */
  readonly count: number
  /** Of how many loops the best counts, in each round. */
  readonly loops: number
}

/** The figures of one case. */
export interface Row {
  readonly case: string
  readonly title: string
  readonly unit: string
  readonly contestants: Readonly<Record<string, Series>>
  readonly ratioToC: Readonly<Record<string, number>>
}

/** Has the entrants take turns in every case that any of them has. */
export async function takeTurns(
  cases: Readonly<Record<string, Case>>,
  entrants: readonly Entrant[],
  roundCount: number,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const [test, { title, unit, count, loops }] of Object.entries(cases)) {
    const taking = entrants.filter((entrant) => entrant.cases.includes(test))
    if (taking.length === 0) continue
    const rounds = new Map<string, number[]>(taking.map((entrant) => [entrant.name, []]))
    for (const entrant of taking) await entrant.ask(test, count)
    for (let round = 0; round < roundCount; round += 1) {
      // Who goes first changes from round to round.
      const order = round % 2 === 0 ? taking : [...taking].reverse()
      for (const entrant of order) rounds.get(entrant.name)?.push(await bestOf(entrant, test, count, loops))
    }
    rows.push(rowOf({ case: test, title, unit }, rounds))
  }
  return rows
}

/** One table of what was measured in several sittings: the rounds of each row after one another. */
export function joinSittings(sittings: readonly (readonly Row[])[]): Row[] {
  const [first = []] = sittings
  return first.map((row) => {
    const parts = sittings.map((rows) => {
      const part = rows.find((other) => other.case === row.case)
      if (part === undefined) throw new Error(`${row.case} is missing in a sitting`)
      return part
    })
    const names = Object.keys(row.contestants)
    const roundsOf = (name: string): number[] => parts.flatMap((part) => [...(part.contestants[name]?.rounds ?? [])])
    return rowOf(row, new Map(names.map((name) => [name, roundsOf(name)])))
  })
}

function rowOf(about: Pick<Row, 'case' | 'title' | 'unit'>, rounds: ReadonlyMap<string, readonly number[]>): Row {
  const c = rounds.get('C') ?? []
  return {
    case: about.case,
    title: about.title,
    unit: about.unit,
    contestants: Object.fromEntries([...rounds].map(([name, values]) => [name, series(values)])),
    ratioToC: Object.fromEntries([...rounds].map(([name, values]) => [name, medianRatio(values, c)])),
  }
}

async function bestOf({ ask }: Entrant, test: string, count: number, loops: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let loop = 0; loop < loops; loop += 1) best = Math.min(best, await ask(test, count))
  return best
}

/** The ratio of the time of one contestant to that of another, round by round; NaN where one did not take part. */
export function ratioBetween(row: Row | undefined, name: string, other: string): number {
  const [ours, theirs] = [row?.contestants[name], row?.contestants[other]]
  return ours === undefined || theirs === undefined ? Number.NaN : medianRatio(ours.rounds, theirs.rounds)
}

/** Prints medians, and in brackets the ratio to C. */
export function printRows(rows: readonly Row[], names: readonly string[]): void {
  const taking = names.filter((name) => rows.some((row) => name in row.contestants))
  const cell = (row: Row, name: string): string => {
    const figures = row.contestants[name]
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

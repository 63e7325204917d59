import type { Place } from './mutant.js'

export interface Result extends Place {
  readonly subject: string
  readonly seed: number
  readonly kind: string
  /**
   * - `noticed`: a test failed.
   * - `late`: the tests did not end in time with the mutant, but did with the original.
   * - `survived`: all tests passed.
   * - `unclear`: the tests did not end in time with the mutant, and with the original they did not end or were slow.
   * - `unbuilt`: the compiler rejected the mutant.
   * - `equivalent`: the mutant behaves like the original.
   */
  readonly outcome: 'noticed' | 'late' | 'survived' | 'unclear' | 'unbuilt' | 'equivalent'
  /** The first test that failed. */
  readonly by?: string
  /** True if an earlier run tried this mutant and no test noticed it. */
  readonly isAgain?: boolean
}

/** A mutant that no test can notice, with the reason. */
export interface Equivalent {
  readonly file: string
  readonly before: string
  readonly change: string
  readonly reason: string
}

export function isEquivalent(place: Place, list: readonly Equivalent[]): boolean {
  return list.some(
    ({ file, before, change }) => file === place.file && before === place.before && change === place.change,
  )
}

/**
 * Counts for one part of the sources in one run. `first` counts the mutants that the tests noticed at the first try,
 * `noticed` those that they notice now.
 */
export interface Row {
  readonly what: string
  readonly seed: string
  readonly faults: number
  readonly first: number
  readonly noticed: number
  readonly equivalent: number
}

const head = ['| what | seed | faults | at first | noticed | equivalent | score |', '|---|---|---|---|---|---|---|']

/** Titles of the table rows that join several subjects, and of the rows for native code. */
const titles: Readonly<Record<string, string>> = {
  sim: 'sim, native code',
  spec: 'specs',
  'ffi/native': 'ffi, native code',
}

export function rowsOf(results: readonly Result[]): Row[] {
  const nameOf = ({ subject }: Result): string => titles[subject] ?? titles[subject.split('/')[0] as string] ?? subject
  const runOf = (one: Result): string => `${one.seed} ${nameOf(one)}`
  return [...new Set(results.map(runOf))].map((run) => {
    const some = results.filter((one) => runOf(one) === run)
    const { seed } = some[0] as Result
    const counted = some.filter(({ outcome }) => !['unbuilt', 'equivalent', 'unclear'].includes(outcome))
    const noticed = counted.filter(({ outcome }) => outcome !== 'survived')
    return {
      what: nameOf(some[0] as Result),
      seed: String(seed),
      faults: counted.length,
      first: noticed.filter(({ isAgain }) => isAgain !== true).length,
      noticed: noticed.length,
      equivalent: some.filter(({ outcome }) => outcome === 'equivalent').length,
    }
  })
}

/** Parses the rows of a table that `table` wrote. */
export function rowsIn(text: string): Row[] {
  const row = /^\| (?!all )(.+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|.*\|$/gm
  return [...text.matchAll(row)].map(([, what = '', seed = '', ...counts]) => {
    const [faults = 0, first = 0, noticed = 0, equivalent = 0] = counts.map(Number)
    return { what, seed, faults, first, noticed, equivalent }
  })
}

/** Returns a Markdown table with a row for each part and a row of totals. */
export function table(rows: readonly Row[]): string {
  const sum = (key: 'faults' | 'first' | 'noticed' | 'equivalent') => rows.reduce((all, row) => all + row[key], 0)
  const all = { faults: sum('faults'), first: sum('first'), noticed: sum('noticed'), equivalent: sum('equivalent') }
  return [...head, ...[...rows, { what: 'all', seed: '', ...all }].map(line)].join('\n')
}

function line({ what, seed, faults, first, noticed, equivalent }: Row): string {
  const score = faults === 0 ? '' : `${Math.floor((100 * noticed) / faults)} %`
  return `| ${[what, seed, faults, first, noticed, equivalent, score].join(' | ')} |`
}

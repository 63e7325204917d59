import type { Place } from './mutant.js'

export interface Result extends Place {
  readonly subject: string
  readonly seed: number
  readonly kind: string
  /**
   * `noticed` by a test, `late` where the tests did not end and those of the original did,
   * `unclear` where neither did, `unbuilt` what no compiler takes, `equivalent` what changes nothing.
   */
  readonly outcome: 'noticed' | 'late' | 'survived' | 'unclear' | 'unbuilt' | 'equivalent'
  /** The first test that failed. */
  readonly by?: string
  /** It was tried before, and not noticed. */
  readonly isAgain?: boolean
}

/** A fault that no test can notice, and why. */
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
 * Counts of a part of the sources in one run: `first` of its faults were noticed when they were tried first, `noticed`
 * now.
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

/** What the rows of subjects that are made up of several are called, and those of native code. */
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

/** The rows of a table that `table` wrote. */
export function rowsIn(text: string): Row[] {
  const row = /^\| (?!all )(.+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|.*\|$/gm
  return [...text.matchAll(row)].map(([, what = '', seed = '', ...counts]) => {
    const [faults = 0, first = 0, noticed = 0, equivalent = 0] = counts.map(Number)
    return { what, seed, faults, first, noticed, equivalent }
  })
}

/** A table of Markdown: each part, and all of them. */
export function table(rows: readonly Row[]): string {
  const sum = (key: 'faults' | 'first' | 'noticed' | 'equivalent') => rows.reduce((all, row) => all + row[key], 0)
  const all = { faults: sum('faults'), first: sum('first'), noticed: sum('noticed'), equivalent: sum('equivalent') }
  return [...head, ...[...rows, { what: 'all', seed: '', ...all }].map(line)].join('\n')
}

function line({ what, seed, faults, first, noticed, equivalent }: Row): string {
  const score = faults === 0 ? '' : `${Math.floor((100 * noticed) / faults)} %`
  return `| ${[what, seed, faults, first, noticed, equivalent, score].join(' | ')} |`
}

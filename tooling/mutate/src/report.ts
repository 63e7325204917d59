import type { Place } from './mutant.js'

export interface Result extends Place {
  readonly subject: string
  /**
   * `noticed` by a test, `late` where the tests did not end and those of the original did,
   * `unclear` where neither did, `unbuilt` what no compiler takes, `equivalent` what changes nothing.
   */
  readonly outcome: 'noticed' | 'late' | 'survived' | 'unclear' | 'unbuilt' | 'equivalent'
  /** The first test that failed. */
  readonly by?: string
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

interface Score {
  readonly noticed: number
  readonly counted: number
}

function scoreOf(results: readonly Result[]): Score {
  const counted = results.filter(({ outcome }) => !['unbuilt', 'equivalent', 'unclear'].includes(outcome))
  return { counted: counted.length, noticed: counted.filter(({ outcome }) => outcome !== 'survived').length }
}

const percent = ({ noticed, counted }: Score): string =>
  counted === 0 ? '' : `${Math.floor((100 * noticed) / counted)} %`

/** A table of Markdown: one row a package, and all of them. */
export function table(results: readonly Result[]): string {
  const packageOf = ({ subject }: Result): string => subject.split('/')[0] as string
  const rows = [...new Set(results.map(packageOf))].map((name) =>
    row(
      name,
      results.filter((one) => packageOf(one) === name),
    ),
  )
  return [
    '| what | faults | noticed | equivalent | score |',
    '|---|---|---|---|---|',
    ...rows,
    row('all', results),
  ].join('\n')

  function row(name: string, some: readonly Result[]): string {
    const score = scoreOf(some)
    const equivalent = some.filter(({ outcome }) => outcome === 'equivalent').length
    return `| ${name} | ${score.counted} | ${score.noticed} | ${equivalent} | ${percent(score)} |`
  }
}

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '@shoal/cli/bench'
import { atLeast, atMost, type Bar } from './bars.js'
import type { Outcome } from './options.js'
import { median } from './statistics.js'
import { joinPasses, printRows, type Row } from './turns.js'

/**
 * Runs a command of this program in `processes` processes, one after the other, and joins their results. A process
 * stays on its first processor. If another guest uses the other half of that core, the process is half as slow again in
 * all its rounds, so with a single process per side the luckier side would win.
 *
 * @param words the command and its options, without `--json` and `--processes`
 * @throws Error if a process fails
 */
export function repeatInProcesses(words: readonly string[], processes: number): Outcome {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-bench-'))
  try {
    const outcomes = Array.from({ length: processes }, (_, index) => {
      const file = join(folder, `${index}.json`)
      const { status, signal, error } = spawnSync(
        process.execPath,
        [process.argv[1] as string, ...words, '--json', file],
        { stdio: ['ignore', 'inherit', 'inherit'] },
      )
      if (error !== undefined) throw error
      if (status !== 0)
        throw new Error(`process ${index + 1} of ${processes} ended with ${signal ?? `status ${status}`}`)
      console.log('')
      const outcome = JSON.parse(readFileSync(file, 'utf8')) as Outcome
      casesOf(outcome)
      return outcome
    })
    console.log(`All ${processes} processes together\n`)
    return joinOutcomes(outcomes)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Joins the rounds of all processes, and takes the median of each bar. Results outside of tables come from the first
 * process.
 * @throws Error if a process has measured less than the first
 */
export function joinOutcomes(outcomes: readonly Outcome[]): Outcome {
  const [{ results, bars }] = outcomes as readonly [Outcome]
  const cases = joinCases(outcomes.map(casesOf))
  return {
    results: Array.isArray(results) ? cases : { ...(results as object), cases },
    bars: bars.map((bar) => joinBar(bar, outcomes)),
  }
}

/** @throws UsageError for a command without a table of cases */
function casesOf({ results }: Outcome): readonly Row[] {
  const cases = Array.isArray(results) ? results : (results as { readonly cases?: unknown }).cases
  if (!Array.isArray(cases)) throw new UsageError('--processes: this command has no table of cases')
  return cases as readonly Row[]
}

/** A ratio is the median of the processes' ratios, because rounds of different processes are not pairs. */
function joinCases(passes: readonly (readonly Row[])[]): readonly Row[] {
  const rows = joinPasses(passes).map((row) => {
    const ratioOf = (name: string): number => median(passes.map((pass) => ratioIn(pass, row.case, name)))
    return { ...row, ratioToC: Object.fromEntries(Object.keys(row.ratioToC).map((name) => [name, ratioOf(name)])) }
  })
  printRows(rows, [...new Set(rows.flatMap(({ subjects }) => Object.keys(subjects)))])
  return rows
}

function ratioIn(rows: readonly Row[], test: string, name: string): number {
  const row = rows.find((one) => one.case === test)
  if (row?.subjects[name] === undefined) throw new Error(`${test} of ${name} is missing in a process`)
  return row.ratioToC[name] ?? Number.NaN
}

function joinBar({ what, limit, unit, side, ofCAgain }: Bar, outcomes: readonly Outcome[]): Bar {
  const same = outcomes.map(({ bars }) => {
    const bar = bars.find((one) => one.what === what)
    if (bar === undefined) throw new Error(`${what} is missing in a process`)
    return bar
  })
  const value = median(same.map((bar) => bar.value))
  const again = ofCAgain === undefined ? {} : { ofCAgain: median(same.map((bar) => bar.ofCAgain ?? Number.NaN)) }
  return (side === 'at most' ? atMost : atLeast)(what, { value, ...again }, limit, unit)
}

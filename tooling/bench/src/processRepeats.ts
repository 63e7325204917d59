import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '@shoal/cli/bench'
import type { Bar } from './bars.js'
import type { Outcome } from './options.js'
import { median } from './statistics.js'
import { joinPasses, printRows, type Row } from './turns.js'

/**
 * Runs a command of this program in `processes` processes, one after the other, and joins what they found. A process stays on the
 * processor on which it began, and one whose other half a neighbour uses is half as slow again for all of its rounds: of one
 * process on each side the luckier wins.
 *
 * @param words the command and its options, without `--json` and `--processes`
 * @throws Error when a process fails
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
      return JSON.parse(readFileSync(file, 'utf8')) as Outcome
    })
    console.log(`All ${processes} processes together\n`)
    return joinOutcomes(outcomes)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The rounds of all of them; of each bar the median. */
export function joinOutcomes(outcomes: readonly Outcome[]): Outcome {
  const [first] = outcomes as readonly [Outcome]
  return {
    results: joinResults(outcomes.map(({ results }) => results)),
    bars: first.bars.map((bar) => joinBar(bar, outcomes)),
  }
}

function joinResults(all: readonly unknown[]): unknown {
  const [first] = all as readonly [{ readonly cases?: readonly Row[] }]
  if (Array.isArray(first)) return joinAndPrint(all as readonly (readonly Row[])[])
  if (first.cases === undefined) throw new UsageError('--processes: this command has no table of cases')
  return { ...first, cases: joinAndPrint(all.map((one) => (one as { cases: readonly Row[] }).cases)) }
}

/** A ratio is the median of those of the processes: two rounds of different ones are no pair. */
function joinAndPrint(passes: readonly (readonly Row[])[]): readonly Row[] {
  const ratio = (index: number, name: string): number =>
    median(passes.map((rows) => rows[index]?.ratioToC[name] ?? Number.NaN))
  const rows = joinPasses(passes).map((row, index) => ({
    ...row,
    ratioToC: Object.fromEntries(Object.keys(row.ratioToC).map((name) => [name, ratio(index, name)])),
  }))
  printRows(rows, [...new Set(rows.flatMap(({ subjects }) => Object.keys(subjects)))])
  return rows
}

function joinBar(bar: Bar, outcomes: readonly Outcome[]): Bar {
  const same = outcomes.map(({ bars }) => bars.find(({ what }) => what === bar.what) ?? bar)
  const value = median(same.map((one) => one.value))
  const again = bar.ofCAgain === undefined ? {} : { ofCAgain: median(same.map((one) => one.ofCAgain ?? Number.NaN)) }
  return { ...bar, value, ...again, met: bar.side === 'at most' ? value <= bar.limit : value >= bar.limit }
}

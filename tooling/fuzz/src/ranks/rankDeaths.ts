import { parseArgs } from 'node:util'
import { describePlan, planOf } from './plan.js'
import { isLate, runCase } from './runCase.js'

/** Options of a campaign in which ranks die. */
export interface RankDeathsOptions {
  readonly seed: number
  /** Number of cases. Each case uses the next seed. */
  readonly count: number
  /** If aborted, the campaign ends after the current case. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds by which a report may exceed its deadline. Default 1000. */
  readonly slack?: number | undefined
  /** Milliseconds after which ranks give up a stopped rank. Default 3000. */
  readonly limit?: number | undefined
  readonly onCase?: ((words: string, wrong: readonly string[]) => void) | undefined
}

export interface RankDeathsResult {
  readonly ran: number
  /** One text for each failed case, with its seed. */
  readonly failures: string[]
  /** Number of failures that concern only time. On a busy machine they mean little. */
  readonly late: number
}

/**
 * Runs cases on the software device in which a rank is killed, stops, throws or calls `process.exit(0)` at one of ten
 * stages. The other ranks must report the fault in time, and nothing may be left behind.
 */
export async function runRankDeaths(options: RankDeathsOptions): Promise<RankDeathsResult> {
  const { seed, count, signal, slack = 1000, limit = 3000, onCase } = options
  const failures: string[] = []
  let ran = 0
  let late = 0
  for (; ran < count && signal?.aborted !== true; ran += 1) {
    const plan = planOf(seed + ran, limit)
    const wrong = await runCase(plan, slack)
    if (wrong.length > 0) {
      failures.push([describePlan(plan), ...wrong].join('\n  '))
      if (wrong.every((words) => isLate(words) || words.startsWith('stderr: '))) late += 1
    }
    onCase?.(describePlan(plan), wrong)
  }
  return { ran, failures, late }
}

/** Command of `npm run fuzz -- ranks`. */
export const rankDeaths = {
  title: 'ranks that are killed, stop, throw or exit: --seed N, --count N, --slack MS, --limit MS',
  async run(values: readonly string[]): Promise<number> {
    const text = { type: 'string' } as const
    const options = { seed: text, count: text, slack: text, limit: text }
    const given = parseArgs({ args: [...values], options }).values
    const seed = Number(given.seed ?? Math.floor(Math.random() * 1e9))
    const { ran, failures, late } = await runRankDeaths({
      seed,
      count: Number(given.count ?? (given.seed === undefined ? 40 : 1)),
      slack: Number(given.slack ?? 1000),
      limit: Number(given.limit ?? 3000),
      // Each case is printed at once, because the user may stop a long campaign early.
      onCase: (words, wrong) => {
        process.stdout.write(`${[`${wrong.length === 0 ? 'ok' : 'FAILED'} ${words}`, ...wrong].join('\n  ')}\n`)
      },
    })
    process.stdout.write(`\n${ran} cases from seed ${seed}, ${failures.length} failed, ${late} of them only late\n`)
    return failures.length === 0 ? 0 : 1
  },
}

import { type Case, joinPasses, type Row, takeTurns } from '../turns.js'
import { chooseIdleProcessors, findPlacements, mainThreadProcessors, type Placement } from './placements.js'
import { type ProcessCommand, ProcessGroup } from './processGroup.js'
import { Scheduler } from './scheduler.js'

/** The process groups of a comparison: the commands of each group. All groups have the same number of processes. */
export type ComparisonPlan<Name extends string> = Readonly<Record<Name, readonly ProcessCommand[]>>

/** The process groups of one pass. */
export class Comparison<Name extends string> {
  readonly #plan: ComparisonPlan<Name>
  readonly #placements: readonly Placement[] | undefined
  readonly #groups = new Map<Name, ProcessGroup>()
  readonly #scheduler = new Scheduler()

  constructor(plan: ComparisonPlan<Name>) {
    this.#plan = plan
    // Found once, so that every group gets the same placements.
    this.#placements = findPlacements((Object.values(plan) as ProcessCommand[][])[0]?.length ?? 0)
  }

  /** The processors that main threads may be bound to; empty if they are not bound. */
  get processors(): number[] {
    return mainThreadProcessors(this.#placements)
  }

  /**
   * The line that the groups printed when they were connected. It is equal for all, because they use the same library.
   */
  get readyLine(): string {
    const lines = new Set([...this.#groups.values()].map((group) => group.readyLine))
    if (lines.size > 1) throw new Error(`not the same library: ${[...lines].join(', ')}`)
    return [...lines][0] ?? ''
  }

  /** Starts a group, and replaces the previous group with this name. */
  async start(name: Name): Promise<void> {
    const before = this.#groups.get(name)
    if (before !== undefined) {
      this.#scheduler.suspend(before)
      before.close()
    }
    const group = await ProcessGroup.start(name, this.#plan[name], this.#placements)
    this.#groups.set(name, group)
    this.#scheduler.suspend(group)
  }

  /** Resumes this group and suspends all others. */
  run(name: Name): ProcessGroup {
    const group = this.#groups.get(name) as ProcessGroup
    this.#scheduler.run(group)
    return group
  }

  /** Suspends all groups, and binds main threads to processors that are idle now. */
  moveMainThreads(): void {
    this.#scheduler.suspendAll()
    chooseIdleProcessors(this.#placements)
  }

  /** Ends all groups, so that they do not make processors look busy in the next pass. */
  async end(): Promise<void> {
    await Promise.all([...this.#groups.values()].map((group) => group.end()))
  }
}

/**
 * Measures in as many passes as there are groups. In each pass another group starts first, because the location of
 * buffers in a GPU's memory changes the bandwidth by some percent.
 */
export async function compareInPasses<Name extends string>(
  plan: ComparisonPlan<Name>,
  measure: (comparison: Comparison<Name>, readyLine: string) => Promise<readonly Row[]>,
): Promise<{ readonly rows: Row[]; readonly processors: readonly number[][] }> {
  const names = Object.keys(plan) as Name[]
  const passes: (readonly Row[])[] = []
  const processors: number[][] = []
  for (let pass = 0; pass < names.length; pass += 1) {
    const comparison = new Comparison(plan)
    try {
      for (const name of [...names.slice(pass), ...names.slice(0, pass)]) await comparison.start(name)
      passes.push(await measure(comparison, comparison.readyLine))
    } finally {
      await comparison.end()
    }
    processors.push(comparison.processors)
  }
  return { rows: joinPasses(passes), processors }
}

/** The number of messages of one size. */
export interface LoopCounts {
  /** In one loop, and before the loop. */
  readonly iterations: number
  readonly warmUps: number
  /** A figure is the best of this number of loops; default 1. Short loops vary most and cost little. */
  readonly loops?: number
  /** Figures per subject in a round; default 1. */
  readonly turns?: number
}

/** Measures a test in several sizes. Requests are `TEST BYTES ITERATIONS WARMUPS`. */
export function measureSizes<Name extends string>(plan: {
  readonly test: string
  readonly sizes: readonly number[]
  readonly names: readonly Name[]
  readonly rounds: number
  readonly countsFor: (bytes: number) => LoopCounts
  readonly measure: (name: Name, request: string) => Promise<number>
  readonly beforeRound?: () => void
}): Promise<Row[]> {
  const { test, sizes, countsFor } = plan
  const cases = sizes.map((bytes): [string, Case] => {
    const { iterations, loops = 1, turns = 1 } = countsFor(bytes)
    const title = sizes.length > 1 ? `${test} ${bytes} B` : test
    return [`${test} ${bytes}`, { title, unit: 'µs', count: iterations, loops, turns }]
  })
  const subjects = plan.names.map((name) => ({
    name,
    cases: cases.map(([request]) => request),
    measure: (request: string, count: number) =>
      plan.measure(name, `${request} ${count} ${countsFor(bytesOf(request)).warmUps}`),
  }))
  return takeTurns(Object.fromEntries(cases), subjects, plan.rounds, plan)
}

/** The size in the name of a case. */
export function bytesOf(test: string): number {
  return Number(test.split(' ')[1])
}

/** The number of rounds in one pass, for this total number of rounds. */
export function roundsOfPass(rounds: number, names: readonly string[]): number {
  return Math.max(1, Math.round(rounds / names.length))
}

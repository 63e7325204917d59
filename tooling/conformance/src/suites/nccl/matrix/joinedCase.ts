import assert from 'node:assert/strict'
import type { CaseContext, ConformanceCase } from '../../../suite.js'
import { runsEverything } from '../../../support/extent.js'
import { needNccl } from '../needNccl.js'
import { isSupported, largeCount, ProcessGroup, range, ranksAvailable } from './processGroup.js'
import { everyTrial, type Trial } from './trial.js'

const sampleSize = 60

export function sampleTrials(t: CaseContext, accepts: (trial: Trial) => boolean = () => true): Trial[] {
  const all = everyTrial(t.random, largeCount(t)).filter((trial) => isSupported(trial) && accepts(trial))
  return runsEverything(t) ? all.slice(0, 600) : all.slice(0, sampleSize)
}

/** Puts each rank into a separate process, or all ranks into one. */
function randomLayout(t: CaseContext, worldSize: number): number[][] {
  return t.random.integer(0, 1) === 0 ? [range(worldSize)] : oneEach(worldSize)
}

/** One process for each rank. */
export function oneEach(worldSize: number): number[][] {
  return range(worldSize).map((rank) => [rank])
}

/**
 * Makes a case in which a random number of ranks join a communicator, do something, and leave it. The case is skipped
 * if NCCL is too old.
 */
export function joinedCase(about: {
  readonly name: string
  readonly since: number
  /** The feature that this version introduced. */
  readonly what: string
  /** The least number of ranks. The default is 2. */
  readonly ranks?: number
  /** The ranks of each process. The default is random: one process, or one for each rank. */
  readonly layout?: (worldSize: number) => number[][]
  readonly blocking?: boolean
  /** Returns the text to note. */
  readonly run: (t: CaseContext, processes: ProcessGroup, worldSize: number) => Promise<string>
}): ConformanceCase {
  const { name, since, what, ranks = 2, layout, blocking, run } = about
  return {
    name,
    requires: { ranks },
    timeout: 300_000,
    async run(t) {
      needNccl(t, since, what)
      const worldSize = t.random.integer(ranks, ranksAvailable(t))
      const parts = layout?.(worldSize) ?? randomLayout(t, worldSize)
      const processes = await ProcessGroup.join(t, parts, worldSize - parts.flat().length, blocking)
      const note = await run(t, processes, worldSize)
      await processes.leave()
      t.note(note)
    },
  }
}

/** Runs a command that returns its failures in every process, and requires that it returns none. */
export async function runWithoutFailure(processes: ProcessGroup, command: string, argument?: unknown): Promise<void> {
  for (const failures of await processes.run<string[]>(command, () => argument)) assert.deepEqual(failures, [])
}

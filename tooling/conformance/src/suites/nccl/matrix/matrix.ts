import type { CaseContext, ConformanceCase, Suite } from '../../../suite.js'
import { runsEverything } from '../../../support/extent.js'
import { oneEach } from './joinedCase.js'
import { isSupported, largeCount, ProcessGroup, range, ranksAvailable } from './processGroup.js'
import { everyTrial, hugeTrials, type Trial } from './trial.js'

/** Runs trials on one communicator. Its ranks are distributed over processes. */
async function runTrials(t: CaseContext, layout: readonly (readonly number[])[], trials: readonly Trial[]) {
  const processes = await ProcessGroup.join(t, layout)
  await processes.try(trials)
  await processes.leave()
}

/** Returns all world sizes on the software device, and one, two, half and all ranks on GPUs. */
function worldSizes(t: CaseContext, least: number): number[] {
  const most = ranksAvailable(t)
  const sizes = t.isSoftware ? range(most).map((index) => index + 1) : [1, 2, Math.floor(most / 2), most]
  return [...new Set(sizes)].filter((size) => size >= least && size <= most)
}

/**
 * Distributes half of the trials over the world sizes. A full run does every trial for each size, and some huge trials.
 */
function distributed(t: CaseContext, sizes: readonly number[]): Trial[][] {
  const all = (): Trial[] => everyTrial(t.random, largeCount(t)).filter(isSupported)
  if (runsEverything(t)) return sizes.map(() => [...all(), ...hugeTrials(t.random, 2 ** 22).filter(isSupported)])
  const some = all()
  return sizes.map((_, turn) => some.filter((__, index) => index % (2 * sizes.length) === turn))
}

const inOneProcess: ConformanceCase = {
  name: 'every collective, dtype, op and count over 1 to 8 ranks of one process, against double precision',
  timeout: 1_200_000,
  async run(t) {
    const sizes = worldSizes(t, 1)
    const shares = distributed(t, sizes)
    for (const [turn, worldSize] of sizes.entries()) {
      const trials = shares[turn] as Trial[]
      await runTrials(t, [range(worldSize)], trials)
      t.note(`${trials.length} operations over ${worldSize} ranks`)
    }
  },
}

const inManyProcesses: ConformanceCase = {
  name: 'every collective over ranks in processes of their own',
  requires: { ranks: 2 },
  timeout: 1_200_000,
  async run(t) {
    const sizes = runsEverything(t) ? worldSizes(t, 2) : [t.random.integer(2, ranksAvailable(t))]
    for (const worldSize of sizes) {
      const trials = sample(t, everyTrial(t.random, largeCount(t)).filter(isSupported))
      await runTrials(t, oneEach(worldSize), trials)
      t.note(`${trials.length} operations over ${worldSize} processes`)
    }
  },
}

const severalRanksEach: ConformanceCase = {
  name: 'every collective over processes that have several ranks each',
  requires: { ranks: 3 },
  timeout: 1_200_000,
  async run(t) {
    const most = ranksAvailable(t)
    const worldSize = t.random.integer(3, most)
    const border = t.random.integer(1, worldSize - 1)
    const trials = sample(t, everyTrial(t.random, largeCount(t)).filter(isSupported))
    await runTrials(t, [range(border), range(worldSize).slice(border)], trials)
    t.note(`${trials.length} operations over ${border} and ${worldSize - border} ranks`)
  },
}

const sampleSize = 150

function sample(t: CaseContext, trials: Trial[]): Trial[] {
  return runsEverything(t) ? trials : trials.slice(0, sampleSize)
}

export const matrixSuite: Suite = { name: 'nccl matrix', cases: [inOneProcess, inManyProcesses, severalRanksEach] }

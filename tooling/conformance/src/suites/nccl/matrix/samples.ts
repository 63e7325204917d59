import { ncclVersion } from '@shoal/nccl'
import type { CaseContext } from '../../../suite.js'
import { runsEverything } from '../../../support/extent.js'
import { isSupported, largeCount, range } from './processGroup.js'
import { everyTrial, type Trial } from './trial.js'

const sampleSize = 60

export function sampleTrials(t: CaseContext, accepts: (trial: Trial) => boolean = () => true): Trial[] {
  const all = everyTrial(t.random, largeCount(t)).filter((trial) => isSupported(trial) && accepts(trial))
  return runsEverything(t) ? all.slice(0, 600) : all.slice(0, sampleSize)
}

/** Several ranks, each in a process of its own or all in one. */
export function randomLayout(t: CaseContext, worldSize: number): number[][] {
  return t.random.integer(0, 1) === 0 ? [range(worldSize)] : range(worldSize).map((rank) => [rank])
}

/** Whether NCCL is new enough; a note says so where it is not. */
export function has(t: CaseContext, since: number, what: string): boolean {
  const version = ncclVersion()
  if (version.value >= since) return true
  t.note(`NCCL ${version} has no ${what}`)
  return false
}

import { LaunchEnvironmentError } from '../errors.js'
import type { Launcher } from '../job.js'
import { mostRanks } from '../rendezvous/state.js'
import type { Environment } from './variables.js'

/** Position of this process according to its environment. */
export interface RankPlace {
  readonly launcher: Launcher
  readonly rank: number
  readonly worldSize: number
  /** Undefined values are derived from the other ranks. */
  readonly localRank: number | undefined
  readonly localWorldSize: number | undefined
  readonly nodeRank: number | undefined
}

/** A rank of a launcher without a rendezvous; rank 0 must serve it. */
export interface ForeignPlace extends RankPlace {
  /** Whether all ranks are on this machine. */
  readonly isOneMachine: boolean
  /** Whether `isOneMachine` is only a guess from missing variables. */
  readonly isGuess: boolean
  /** Equal for all ranks of the job. */
  readonly jobId: string
  /**
   * A variable that each rank has, but not the launcher.
   *
   * If it is set, the launcher's process is part of the job's identity.
   */
  readonly rankVariable: string | undefined
  /** The machine of rank 0, if the launcher reports it. */
  readonly firstHost: string | undefined
}

export type ReadPlace = (environment: Environment) => ForeignPlace | undefined

/** Variable names of each launcher, for errors. */
const variablesOf: Readonly<Record<Launcher, readonly [rank: string, size: string, localRank: string, local: string]>> =
  {
    shoal: ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE'],
    torchrun: ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE'],
    openmpi: [
      'OMPI_COMM_WORLD_RANK',
      'OMPI_COMM_WORLD_SIZE',
      'OMPI_COMM_WORLD_LOCAL_RANK',
      'OMPI_COMM_WORLD_LOCAL_SIZE',
    ],
    pmi: ['PMI_RANK', 'PMI_SIZE', 'MPI_LOCALRANKID or PMI_LOCAL_RANK', 'MPI_LOCALNRANKS or PMI_LOCAL_SIZE'],
    slurm: ['SLURM_PROCID', 'SLURM_STEP_NUM_TASKS', 'SLURM_LOCALID', 'SLURM_STEP_TASKS_PER_NODE'],
    single: ['', '', '', ''],
  }

/** Checks rank and sizes. @throws LaunchEnvironmentError that names the variables */
export function checkPlace({ launcher, rank, worldSize, localRank, localWorldSize }: RankPlace): void {
  const [rankName, sizeName, localRankName, localName] = variablesOf[launcher]
  if (worldSize < 1 || rank >= worldSize) {
    throw new LaunchEnvironmentError(
      `${launcher} says that this is rank ${rank} of ${worldSize} (${rankName}, ${sizeName})`,
    )
  }
  if (worldSize > mostRanks) {
    throw new LaunchEnvironmentError(
      `${launcher} says that there are ${worldSize} ranks; a job has ${mostRanks} at most (${sizeName})`,
    )
  }
  if (localWorldSize !== undefined && (localWorldSize < 1 || localWorldSize > worldSize)) {
    throw new LaunchEnvironmentError(
      `${launcher} says that ${localWorldSize} of ${worldSize} ranks are on this machine (${localName}, ${sizeName})`,
    )
  }
  if (localRank !== undefined && localRank >= (localWorldSize ?? worldSize)) {
    throw new LaunchEnvironmentError(
      `${launcher} says that this is local rank ${localRank} of ${localWorldSize ?? worldSize} ` +
        `(${localRankName}, ${localWorldSize === undefined ? sizeName : localName})`,
    )
  }
}

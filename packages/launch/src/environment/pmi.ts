import { LaunchEnvironmentError } from '../errors.js'
import type { ReadPlace } from './place.js'
import { numberIn, requiredNumber, textIn } from './variables.js'

/** Reads the variables of MPICH's mpiexec (Hydra) and other PMI launchers. */
export const readPmi: ReadPlace = (environment) => {
  const rank = numberIn(environment, 'PMI_RANK')
  if (rank === undefined) return undefined
  const worldSize = requiredNumber(environment, 'PMI_SIZE', 'PMI_RANK is set')
  const firstHost = textIn(environment, 'MASTER_ADDR')
  const localWorldSize = numberIn(environment, 'MPI_LOCALNRANKS') ?? numberIn(environment, 'PMI_LOCAL_SIZE')
  return {
    launcher: 'pmi',
    rank,
    worldSize,
    localRank: numberIn(environment, 'MPI_LOCALRANKID') ?? numberIn(environment, 'PMI_LOCAL_RANK'),
    localWorldSize,
    nodeRank: undefined,
    isOneMachine: localWorldSize === undefined ? firstHost === undefined : localWorldSize === worldSize,
    isGuess: localWorldSize === undefined && firstHost === undefined,
    jobId: textIn(environment, 'PMI_JOBID') ?? '',
    rankVariable: 'PMI_RANK',
    firstHost,
  }
}

/**
 * Refuses PMIx without a number of ranks. @throws LaunchEnvironmentError
 *
 * PMIx sets only the rank, and the process must not run as a job of one.
 */
export const refusePmix: ReadPlace = (environment) => {
  const rank = textIn(environment, 'PMIX_RANK')
  if (rank === undefined) return undefined
  throw new LaunchEnvironmentError(
    `PMIX_RANK says that this is rank ${rank} of a job, and no variable says how many ranks it has. Set RANK and WORLD_SIZE.`,
  )
}

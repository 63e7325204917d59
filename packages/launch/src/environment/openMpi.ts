import type { ReadPlace } from './place.js'
import { numberIn, requiredNumber, textIn } from './variables.js'

/** Reads the variables of Open MPI's mpirun. */
export const readOpenMpi: ReadPlace = (environment) => {
  const rank = numberIn(environment, 'OMPI_COMM_WORLD_RANK')
  if (rank === undefined) return undefined
  const because = 'OMPI_COMM_WORLD_RANK is set'
  const worldSize = requiredNumber(environment, 'OMPI_COMM_WORLD_SIZE', because)
  const localWorldSize = requiredNumber(environment, 'OMPI_COMM_WORLD_LOCAL_SIZE', because)
  return {
    launcher: 'openmpi',
    rank,
    worldSize,
    localRank: requiredNumber(environment, 'OMPI_COMM_WORLD_LOCAL_RANK', because),
    localWorldSize,
    // OMPI_COMM_WORLD_NODE_RANK is the number of the process on its node, not the number of the node.
    nodeRank: undefined,
    isOneMachine: localWorldSize === worldSize,
    isGuess: false,
    jobId: textIn(environment, 'PMIX_NAMESPACE') ?? textIn(environment, 'OMPI_MCA_ess_base_jobid') ?? '',
    rankVariable: 'OMPI_COMM_WORLD_RANK',
    firstHost: textIn(environment, 'MASTER_ADDR'),
  }
}

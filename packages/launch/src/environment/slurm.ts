import type { ReadPlace } from './place.js'
import { firstHostOf, tasksOfNode } from './slurmLists.js'
import { numberIn, requiredNumber, textIn } from './variables.js'

/** A task that srun started. The script of sbatch has some of the variables too, and is no rank. */
export const readSlurm: ReadPlace = (environment) => {
  const rank = numberIn(environment, 'SLURM_PROCID')
  const worldSize = numberIn(environment, 'SLURM_STEP_NUM_TASKS')
  if (rank === undefined || worldSize === undefined) return undefined
  const because = 'SLURM_PROCID and SLURM_STEP_NUM_TASKS are set'
  const job = requiredNumber(environment, 'SLURM_JOB_ID', because)
  const nodes = numberIn(environment, 'SLURM_STEP_NUM_NODES') ?? requiredNumber(environment, 'SLURM_NNODES', because)
  const nodeRank = numberIn(environment, 'SLURM_NODEID')
  const perNode = textIn(environment, 'SLURM_STEP_TASKS_PER_NODE')
  const hosts = textIn(environment, 'SLURM_STEP_NODELIST') ?? textIn(environment, 'SLURM_JOB_NODELIST')
  const attempt = textIn(environment, 'SLURM_RESTART_COUNT') ?? '0'
  return {
    launcher: 'slurm',
    rank,
    worldSize,
    localRank: numberIn(environment, 'SLURM_LOCALID'),
    localWorldSize: perNode === undefined || nodeRank === undefined ? undefined : tasksOfNode(perNode, nodeRank),
    nodeRank,
    isOneMachine: nodes === 1,
    jobId: `${job} ${textIn(environment, 'SLURM_STEP_ID') ?? ''} ${attempt}`,
    // The numbers of job and step are unique.
    rankVariable: undefined,
    firstHost: textIn(environment, 'MASTER_ADDR') ?? (hosts === undefined ? undefined : firstHostOf(hosts)),
    // Below the range that systems give to outgoing connections.
    port: 20_000 + (job % 10_000),
  }
}

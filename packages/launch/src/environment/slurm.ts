import { LaunchEnvironmentError } from '../errors.js'
import type { ReadPlace } from './place.js'
import { firstHostOf, tasksOfNode } from './slurmLists.js'
import { type Environment, numberIn, requiredNumber, textIn } from './variables.js'

/**
 * Reads the variables of a task that srun started.
 *
 * The script of sbatch has some of these variables too, but is not a rank.
 */
export const readSlurm: ReadPlace = (environment) => {
  const rank = numberIn(environment, 'SLURM_PROCID')
  const worldSize = numberIn(environment, 'SLURM_STEP_NUM_TASKS')
  if (rank === undefined || worldSize === undefined) return undefined
  const because = 'SLURM_PROCID and SLURM_STEP_NUM_TASKS are set'
  const job = requiredNumber(environment, 'SLURM_JOB_ID', because)
  const nodes = numberIn(environment, 'SLURM_STEP_NUM_NODES') ?? requiredNumber(environment, 'SLURM_NNODES', because)
  const nodeRank = numberIn(environment, 'SLURM_NODEID')
  const perNode = textIn(environment, 'SLURM_STEP_TASKS_PER_NODE')
  const attempt = textIn(environment, 'SLURM_RESTART_COUNT') ?? '0'
  return {
    launcher: 'slurm',
    rank,
    worldSize,
    localRank: numberIn(environment, 'SLURM_LOCALID'),
    localWorldSize: perNode === undefined || nodeRank === undefined ? undefined : tasksOfNode(perNode, nodeRank),
    nodeRank,
    isOneMachine: nodes === 1,
    isGuess: false,
    jobId: `${job} ${textIn(environment, 'SLURM_STEP_ID') ?? ''} ${attempt}`,
    // The job and step numbers are already unique.
    rankVariable: undefined,
    firstHost: textIn(environment, 'MASTER_ADDR') ?? (nodes === 1 ? undefined : firstHostIn(environment, rank)),
  }
}

/**
 * Returns the host of rank 0: the first node of the list, unless tasks were distributed by hand.
 *
 * @throws LaunchEnvironmentError
 */
function firstHostIn(environment: Environment, rank: number): string | undefined {
  const hosts = textIn(environment, 'SLURM_STEP_NODELIST') ?? textIn(environment, 'SLURM_JOB_NODELIST')
  const first = hosts === undefined ? undefined : firstHostOf(hosts)
  if (textIn(environment, 'SLURM_DISTRIBUTION')?.startsWith('arbitrary') === true) {
    throw new LaunchEnvironmentError(
      "Slurm's arbitrary distribution (SLURM_DISTRIBUTION) does not say which node has rank 0. Set MASTER_ADDR to the first " +
        'name in SLURM_HOSTFILE, on all ranks.',
    )
  }
  const own = textIn(environment, 'SLURMD_NODENAME')
  if (rank === 0 && own !== undefined && first !== undefined && own !== first) {
    throw new LaunchEnvironmentError(
      `rank 0 runs on ${own} (SLURMD_NODENAME), and the others look for it on ${first}, the first node of ` +
        `SLURM_STEP_NODELIST. Set MASTER_ADDR=${own} on all ranks.`,
    )
  }
  return first
}

import { LaunchEnvironmentError } from '../errors.js'
import { type Environment, numberIn, textIn } from './variables.js'

const alone = 'For a job of this process alone, set RANK=0 and WORLD_SIZE=1.'

/** Variables for a rank or a number of ranks, and the variable that they also need. */
interface Half {
  readonly missing: string
  /** Numbers that only a process of a job has. */
  readonly places?: readonly string[]
  /** Counts that imply other ranks when they exceed 1. */
  readonly counts?: readonly string[]
}

const halves: readonly Half[] = [
  { missing: 'WORLD_SIZE', places: ['RANK'] },
  {
    missing: 'RANK',
    places: ['LOCAL_RANK', 'GROUP_RANK', 'TORCHELASTIC_RUN_ID'],
    counts: ['WORLD_SIZE', 'LOCAL_WORLD_SIZE'],
  },
  {
    missing: 'OMPI_COMM_WORLD_RANK',
    places: ['OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_NODE_RANK'],
    counts: ['OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_SIZE'],
  },
  {
    missing: 'PMI_RANK',
    places: ['MPI_LOCALRANKID', 'PMI_LOCAL_RANK'],
    counts: ['PMI_SIZE', 'MPI_LOCALNRANKS', 'PMI_LOCAL_SIZE'],
  },
  { missing: 'SLURM_PROCID', counts: ['SLURM_STEP_NUM_TASKS'] },
]

/**
 * Refuses variables of a job that lack this process's rank or the number of ranks.
 *
 * As a job of one it would run next to the other ranks without them.
 *
 * The script of sbatch and a shell of salloc also have task counts (`SLURM_NTASKS`), and the script has
 * `SLURM_PROCID=0`. A process there that srun did not start is a job of one, as for torch and MPI.
 * @throws LaunchEnvironmentError
 */
export function refuseHalfSet(environment: Environment): void {
  // Without a step, only the batch script has a task number, and its number is 0.
  if ((numberIn(environment, 'SLURM_PROCID') ?? 0) > 0) refuse(environment, 'SLURM_PROCID', 'SLURM_STEP_NUM_TASKS')
  for (const { missing, places = [], counts = [] } of halves) {
    if (textIn(environment, missing) !== undefined) continue
    for (const name of places) if (textIn(environment, name) !== undefined) refuse(environment, name, missing)
    for (const name of counts) if ((numberIn(environment, name) ?? 1) > 1) refuse(environment, name, missing)
  }
  refuseKubernetes(environment)
}

function refuse(environment: Environment, name: string, missing: string): never {
  throw new LaunchEnvironmentError(`${name} is set (${environment[name]}), and ${missing} is not set. ${alone}`)
}

/** Kubernetes numbers its pods, but sets no variables that bootstrap() can use. */
function refuseKubernetes(environment: Environment): void {
  const index = textIn(environment, 'JOB_COMPLETION_INDEX')
  if (index !== undefined) {
    throw new LaunchEnvironmentError(
      `JOB_COMPLETION_INDEX says that this is pod ${index} of an indexed job, and RANK and WORLD_SIZE are not set. Set ` +
        `RANK=$JOB_COMPLETION_INDEX, WORLD_SIZE to the completions of the job, MASTER_ADDR and MASTER_PORT. ${alone}`,
    )
  }
  const worker = textIn(environment, 'LWS_WORKER_INDEX')
  if (worker === undefined || numberIn(environment, 'LWS_GROUP_SIZE') === 1) return
  throw new LaunchEnvironmentError(
    `LWS_WORKER_INDEX says that this is worker ${worker} of a LeaderWorkerSet, and RANK and WORLD_SIZE are not set. Set ` +
      `RANK=$LWS_WORKER_INDEX, WORLD_SIZE=$LWS_GROUP_SIZE, MASTER_ADDR=$LWS_LEADER_ADDRESS and MASTER_PORT. ${alone}`,
  )
}

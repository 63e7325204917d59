import { refuseHalfSet } from './halfSet.js'
import { readOpenMpi } from './openMpi.js'
import type { ForeignPlace } from './place.js'
import { readPmi, refusePmix } from './pmi.js'
import { readSlurm } from './slurm.js'
import { readTorchrun } from './torchrun.js'
import type { Environment } from './variables.js'

/**
 * Which launcher started this process, other than `shoal run`. They start one another (srun starts mpirun's daemons, a
 * script of sbatch starts torchrun), so the one nearest to the rank comes first.
 * @throws LaunchEnvironmentError for variables of a launcher that are incomplete
 */
export function detect(environment: Environment): ForeignPlace | undefined {
  const torchrun = readTorchrun(environment)
  if (torchrun !== undefined) return torchrun
  const openMpi = readOpenMpi(environment)
  if (openMpi !== undefined) return openMpi
  const pmi = readPmi(environment)
  const slurm = readSlurm(environment)
  // srun --mpi=pmi2 sets both, and its own variables say more.
  if (pmi !== undefined && !(slurm?.rank === pmi.rank && slurm.worldSize === pmi.worldSize)) return pmi
  const found = slurm ?? refusePmix(environment)
  if (found === undefined) refuseHalfSet(environment)
  return found
}

import { refuseHalfSet } from './halfSet.js'
import { readOpenMpi } from './openMpi.js'
import type { ForeignPlace } from './place.js'
import { readPmi, refusePmix } from './pmi.js'
import { readSlurm } from './slurm.js'
import { readTorchrun } from './torchrun.js'
import type { Environment } from './variables.js'

/**
 * Detects the launcher of this process, except `shoal run`.
 *
 * Launchers start each other: srun starts mpirun's daemons, a script of sbatch starts torchrun. So the launcher nearest
 * to the rank is checked first.
 * @throws LaunchEnvironmentError for incomplete variables of a launcher
 */
export function detect(environment: Environment): ForeignPlace | undefined {
  const torchrun = readTorchrun(environment)
  if (torchrun !== undefined) return torchrun
  const openMpi = readOpenMpi(environment)
  if (openMpi !== undefined) return openMpi
  const pmi = readPmi(environment)
  const slurm = readSlurm(environment)
  // srun --mpi=pmi2 sets both kinds, and Slurm's own variables contain more.
  if (pmi !== undefined && !(slurm?.rank === pmi.rank && slurm.worldSize === pmi.worldSize)) return pmi
  const found = slurm ?? refusePmix(environment)
  if (found === undefined) refuseHalfSet(environment)
  return found
}

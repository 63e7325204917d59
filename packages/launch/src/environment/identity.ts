import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Launcher } from '../job.js'
import { launcherProcess } from './launcherProcess.js'
import type { ForeignPlace } from './place.js'
import { type Environment, textIn } from './variables.js'

/** What tells a job from others that have the same port and secret. */
export interface JobIdentity {
  /** What names the job: the same on all of its ranks, on all machines. */
  readonly job: string
  /** Of this rank: its machine, and the launcher's process there. Empty where the user has named the job. */
  readonly place: string
  readonly launch: string
  /** How many ranks this machine has, where nothing else names the job; otherwise 0. */
  readonly localWorldSize: number
}

/** Variables that a launcher sets alike for all ranks of a job, and differently for another job. */
const namingVariables: Readonly<Record<Launcher, readonly string[]>> = {
  shoal: [],
  single: [],
  // Not the count of restarts: after a failure on one machine it differs between machines.
  torchrun: ['TORCHELASTIC_RUN_ID', 'MASTER_PORT'],
  openmpi: ['PMIX_NAMESPACE', 'OMPI_MCA_ess_base_jobid'],
  pmi: ['PMI_JOBID'],
  slurm: ['SLURM_JOB_ID', 'SLURM_STEP_ID', 'SLURM_RESTART_COUNT'],
}

export function identityOf(place: ForeignPlace, environment: Environment): JobIdentity {
  const { launcher, worldSize, rankVariable } = place
  const named = textIn(environment, 'SHOAL_JOB_ID')
  const names = named === undefined ? namingVariables[launcher] : ['SHOAL_JOB_ID']
  const settings = names.flatMap((name) =>
    textIn(environment, name) === undefined ? [] : `${name}=${environment[name]}`,
  )
  const job = [`${launcher}, ${worldSize} ranks`, ...settings].join(', ')
  // A launcher with unique numbers, or the user, has said enough.
  if (named !== undefined || rankVariable === undefined) return { job, place: '', launch: '', localWorldSize: 0 }
  const isPlain = launcher === 'torchrun' && settings.length === 0
  return {
    job,
    place: `${machineName()} ${namespaces()} ${place.nodeRank ?? ''}`,
    launch: launcherProcess(rankVariable),
    localWorldSize: isPlain ? (place.localWorldSize ?? 0) : 0,
  }
}

/** Ports that all ranks of a job come to by themselves, below the range that systems give to outgoing connections. */
export function portsOf({ job }: JobIdentity, count: number): number[] {
  const hash = createHash('sha256').update(job).digest()
  return [...new Set(Array.from({ length: count }, (_, index) => 20_000 + (hash.readUInt32LE(4 * index) % 10_000)))]
}

/**
 * The same for all processes of a machine, and for no others: containers share a kernel and not a name, clones a name.
 */
export function machineName(): string {
  try {
    return `${hostname()} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return hostname() // not Linux
  }
}

/** Containers may have the name of their machine; they have processes or a network of their own. */
function namespaces(): string {
  try {
    return ['pid', 'net'].map((name) => readlinkSync(`/proc/self/ns/${name}`)).join(' ')
  } catch {
    return '' // not Linux
  }
}

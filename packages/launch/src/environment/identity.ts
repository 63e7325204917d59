import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Launcher } from '../job.js'
import { launcherProcess } from './launcherProcess.js'
import type { ForeignPlace } from './place.js'
import { type Environment, textIn } from './variables.js'

/** Values that distinguish a job from others with the same port and secret. */
export interface JobIdentity {
  /** Name of the job, the same on all its ranks and machines. */
  readonly job: string
  /** This rank's machine and the launcher's process on it. Empty if the user named the job. */
  readonly place: string
  readonly launch: string
  /** Number of ranks on this machine if nothing else names the job; otherwise 0. */
  readonly localWorldSize: number
}

/** Variables that are equal for all ranks of a job and differ between jobs. */
const namingVariables: Readonly<Record<Launcher, readonly string[]>> = {
  shoal: [],
  single: [],
  // Excludes the restart count: after a failure on one machine it differs between machines.
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
  // SHOAL_JOB_ID, or numbers that a launcher never repeats, identify the job. Nothing else is needed.
  if (named !== undefined || rankVariable === undefined) return { job, place: '', launch: '', localWorldSize: 0 }
  const isPlain = launcher === 'torchrun' && settings.length === 0
  return {
    job,
    place: `${machineName()} ${namespaces()} ${place.nodeRank ?? ''}`,
    launch: launcherProcess(rankVariable),
    localWorldSize: isPlain ? (place.localWorldSize ?? 0) : 0,
  }
}

/** Returns ports that all ranks of a job compute, below the usual range of outgoing connections. */
export function portsOf({ job }: JobIdentity, count: number): number[] {
  const hash = createHash('sha256').update(job).digest()
  return [...new Set(Array.from({ length: count }, (_, index) => 20_000 + (hash.readUInt32LE(4 * index) % 10_000)))]
}

/** Returns a name that is unique per machine: containers share the boot id, clones share the host name. */
export function machineName(): string {
  try {
    return `${hostname()} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return hostname() // not Linux
  }
}

/** Distinguishes containers with the host name of their machine: they have separate process or network namespaces. */
function namespaces(): string {
  try {
    return ['pid', 'net'].map((name) => readlinkSync(`/proc/self/ns/${name}`)).join(' ')
  } catch {
    return '' // not Linux
  }
}

import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { ConnectedJob, type Placement } from './connectedJob.js'
import type { RankPlace } from './environment/place.js'
import { readShoal } from './environment/shoal.js'
import type { Environment } from './environment/variables.js'
import { LaunchEnvironmentError } from './errors.js'
import type { Job, RendezvousOptions } from './job.js'
import { checkTimeout } from './options.js'
import { formatAddress } from './rendezvous/address.js'
import { type Connection, connectTo } from './rendezvous/connection.js'
import { SingleJob } from './singleJob.js'

export interface BootstrapOptions extends RendezvousOptions {
  /** Where the launcher's variables are. Default: `process.env`. */
  readonly environment?: Environment | undefined
}

/**
 * Joins the job that this process was started for, and waits until all its ranks have. Without a launcher it is a job of
 * one. Call it once a process.
 *
 * @throws LaunchEnvironmentError for variables that are incomplete; RendezvousTimeoutError, which names who did not come;
 *   RendezvousError where this rank is refused; RanksLostError where one has died meanwhile; AbortedError.
 */
export async function bootstrap(options: BootstrapOptions = {}): Promise<Job> {
  const timeout = checkTimeout(options.timeout, 'bootstrap')
  const environment = options.environment ?? process.env
  const shoal = readShoal(environment)
  if (shoal === undefined) return new SingleJob()
  checkPlace(shoal)
  const start = performance.now()
  const connection = await connectTo({
    identity: shoal,
    target: () => shoal.target,
    place: formatAddress(shoal.target.address),
    isSecretFresh: true,
    timeout,
    signal: options.signal,
  })
  const left = Math.max(timeout - (performance.now() - start), 0)
  return join(connection, shoal, shoal.deviceOrdinal, { timeout: left, signal: options.signal })
}

/** Waits for all ranks, and completes what the launcher did not tell from where they are. */
async function join(
  connection: Connection,
  place: RankPlace,
  deviceOrdinal: number | undefined,
  options: RendezvousOptions,
): Promise<Job> {
  const { rank, worldSize, launcher } = place
  try {
    const operation = `bootstrap of rank ${rank}`
    const { header } = await connection.request({ op: 'join', host: machineName() }, undefined, {
      operation,
      ...options,
    })
    const hosts = header['hosts'] as string[]
    const distinct = [...new Set(hosts)]
    const nodes = hosts.map((host) => distinct.indexOf(host))
    const node = nodes[rank] as number
    const localRank = place.localRank ?? nodes.slice(0, rank).filter((other) => other === node).length
    const placement: Placement = {
      launcher,
      localRank,
      localWorldSize: place.localWorldSize ?? nodes.filter((other) => other === node).length,
      nodeRank: place.nodeRank ?? node,
      deviceOrdinal: deviceOrdinal ?? localRank,
      nodes,
    }
    return new ConnectedJob(connection, placement, 0, rank, worldSize)
  } catch (error) {
    await connection.close(error instanceof Error ? error : new Error(String(error)))
    throw error
  }
}

/** @throws LaunchEnvironmentError */
function checkPlace({ launcher, rank, worldSize, localRank, localWorldSize }: RankPlace): void {
  if (worldSize < 1 || rank >= worldSize) {
    throw new LaunchEnvironmentError(`${launcher} says that this is rank ${rank} of ${worldSize}`)
  }
  if (localRank !== undefined && localWorldSize !== undefined && localRank >= localWorldSize) {
    throw new LaunchEnvironmentError(`${launcher} says that this is local rank ${localRank} of ${localWorldSize}`)
  }
}

/** The same for all processes of a machine, and for no others: containers share a kernel and not a name, clones a name. */
function machineName(): string {
  try {
    return `${hostname()} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return hostname() // not Linux
  }
}

import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { ConnectedJob, type Placement } from './connectedJob.js'
import { detect } from './environment/detect.js'
import { deviceOrdinalIn } from './environment/deviceOrdinal.js'
import { type Meeting, meetingOf, servedAt } from './environment/meeting.js'
import { checkPlace, type RankPlace } from './environment/place.js'
import { readShoal } from './environment/shoal.js'
import type { Environment } from './environment/variables.js'
import type { Job, RendezvousOptions } from './job.js'
import { checkWait } from './options.js'
import { type Connection, connectTo, type RequestOptions } from './rendezvous/connection.js'
import { SingleJob } from './singleJob.js'

/** How a process joins its job. */
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
  const timeout = checkWait(options, 'bootstrap')
  const environment = options.environment ?? process.env
  if (typeof environment !== 'object') throw new TypeError('bootstrap: environment must be an object of variables')
  const found = find(environment)
  const deviceOrdinal = deviceOrdinalIn(environment)
  if (found === undefined) return new SingleJob(undefined, deviceOrdinal)
  const { place } = found
  checkPlace(place)
  if (place.worldSize === 1) return new SingleJob(place, deviceOrdinal)
  const start = performance.now()
  const meeting = found.meeting()
  if (place.rank === 0) await meeting.serve()
  const connection = await connectTo({
    identity: { rank: place.rank, worldSize: place.worldSize },
    target: meeting.target,
    place: meeting.description,
    isSecretFresh: meeting.isSecretFresh,
    timeout,
    signal: options.signal,
  })
  const left = Math.max(timeout - (performance.now() - start), 0)
  return join(connection, place, deviceOrdinal, { timeout: left, statedTimeout: timeout, signal: options.signal })
}

/** Who this process is, and where it meets the others. */
function find(environment: Environment): { readonly place: RankPlace; readonly meeting: () => Meeting } | undefined {
  const shoal = readShoal(environment)
  if (shoal !== undefined) return { place: shoal, meeting: () => servedAt(shoal.target) }
  const foreign = detect(environment)
  return foreign && { place: foreign, meeting: () => meetingOf(foreign, environment) }
}

/** Waits for all ranks, and completes what the launcher did not tell from where they are. */
async function join(
  connection: Connection,
  place: RankPlace,
  deviceOrdinal: number | undefined,
  options: Omit<RequestOptions, 'operation'>,
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

/** The same for all processes of a machine, and for no others: containers share a kernel and not a name, clones a name. */
function machineName(): string {
  try {
    return `${hostname()} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return hostname() // not Linux
  }
}

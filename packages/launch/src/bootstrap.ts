import { isRevoked, type OptionKeys, optionalOptions, usersWith, waitKeys, wrongType } from '@shoal/types'
import { ConnectedJob, type Placement } from './connectedJob.js'
import { detect } from './environment/detect.js'
import { deviceOrdinalIn } from './environment/deviceOrdinal.js'
import { endpointFor, type RendezvousEndpoint, servedByLauncher } from './environment/endpoint.js'
import { machineName } from './environment/identity.js'
import { checkPlace, type RankPlace } from './environment/place.js'
import { readShoal } from './environment/shoal.js'
import type { Environment } from './environment/variables.js'
import type { Job, RendezvousOptions } from './job.js'
import { waitOf } from './options.js'
import { connectTo } from './rendezvous/connect.js'
import type { Connection, RequestOptions } from './rendezvous/connection.js'
import { SingleJob } from './singleJob.js'

const keys: OptionKeys<BootstrapOptions> = { ...waitKeys, environment: true, users: true }

/** Options of {@link bootstrap}. */
export interface BootstrapOptions extends RendezvousOptions {
  /** The launcher's variables. Default: `process.env`. */
  readonly environment?: Environment | undefined
  /** User ids that may serve a Unix-socket rendezvous, in addition to this process's own. Default: none. */
  readonly users?: readonly number[] | undefined
}

/**
 * Joins the job of this process and waits until all its ranks have joined.
 *
 * Without a launcher, the job has one rank. Call `bootstrap` once per process.
 *
 * @throws LaunchEnvironmentError for incomplete variables; RendezvousTimeoutError, which names the missing ranks;
 * RendezvousError if this rank is refused, or another job uses its port; PeerRefusedError if another user serves the
 * Unix socket; RanksLostError if a rank died meanwhile; AbortedError.
 * @example
 * await using job = await bootstrap({ timeout: 60_000 })
 * console.log(`rank ${job.rank} of ${job.worldSize} on device ${job.deviceOrdinal}`)
 */
export async function bootstrap(options?: BootstrapOptions): Promise<Job> {
  const { environment = process.env, users: others, ...wait } = optionalOptions(options, 'bootstrap', keys)
  const { timeout, signal } = waitOf(wait, 'bootstrap')
  const users = usersWith(others, 'bootstrap')
  if (typeof environment !== 'object' || environment === null || isRevoked(environment)) {
    throw wrongType('bootstrap', 'environment', 'an object of variables', environment)
  }
  const found = find(environment)
  const deviceOrdinal = deviceOrdinalIn(environment)
  if (found === undefined) return new SingleJob(undefined, deviceOrdinal)
  const { place } = found
  checkPlace(place)
  if (place.worldSize === 1) return new SingleJob(place, deviceOrdinal)
  const start = performance.now()
  const endpoint = found.endpoint()
  if (place.rank === 0) await endpoint.serve()
  const connection = await connectTo({ ...endpoint, users, timeout, signal })
  const left = Math.max(timeout - (performance.now() - start), 0)
  return join(connection, place, deviceOrdinal, { timeout: left, statedTimeout: timeout, signal, hint: endpoint.hint })
}

/** Returns the rank of this process and the rendezvous of its job. */
function find(
  environment: Environment,
): { readonly place: RankPlace; readonly endpoint: () => RendezvousEndpoint } | undefined {
  const shoal = readShoal(environment)
  if (shoal !== undefined) return { place: shoal, endpoint: () => servedByLauncher(shoal, shoal.target) }
  const foreign = detect(environment)
  return foreign && { place: foreign, endpoint: () => endpointFor(foreign, environment) }
}

/** Waits for all ranks, then derives values that the launcher does not set. */
async function join(
  connection: Connection,
  place: RankPlace,
  deviceOrdinal: number | undefined,
  options: Omit<RequestOptions, 'operation'>,
): Promise<Job> {
  const { rank, worldSize, launcher } = place
  try {
    const operation = `bootstrap of rank ${rank}`
    const { body } = await connection.request({ op: 'join', host: machineName() }, undefined, {
      operation,
      ...options,
    })
    const numbers = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    const nodes = Array.from({ length: worldSize }, (_, other) => numbers.readUInt32LE(4 * other))
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

import { randomBytes } from 'node:crypto'
import { LaunchEnvironmentError } from '../errors.js'
import { type Address, formatAddress } from '../rendezvous/address.js'
import type { Target } from '../rendezvous/connection.js'
import { startHelper } from '../rendezvous/helper.js'
import { PrivateFolder } from '../rendezvous/privateFolder.js'
import { launcherProcess } from './launcherProcess.js'
import type { ForeignPlace } from './place.js'
import { readSecret } from './shoal.js'
import { type Environment, numberIn, textIn } from './variables.js'

/** Where the rendezvous of a job is, and how it is served. */
export interface RendezvousEndpoint {
  readonly description: string
  readonly target: () => Target | undefined
  /** Whether a refused secret is final. */
  readonly isSecretFresh: boolean
  /** Rank 0 does this first. */
  readonly serve: () => Promise<void>
}

/** The launcher serves it. */
export function servedByLauncher(target: Target): RendezvousEndpoint {
  const description = formatAddress(target.address)
  return { description, target: () => target, isSecretFresh: true, serve: async () => undefined }
}

/** Rank 0 has to serve it. */
export function endpointFor(place: ForeignPlace, environment: Environment): RendezvousEndpoint {
  return place.isOneMachine ? onOneMachine(place, environment) : acrossMachines(place, environment)
}

/** A socket in a folder of this user's. */
function onOneMachine(place: ForeignPlace, environment: Environment): RendezvousEndpoint {
  const { launcher, worldSize, rankVariable } = place
  const named = textIn(environment, 'SHOAL_JOB_ID')
  const launchedBy = rankVariable === undefined ? '' : launcherProcess(rankVariable)
  const folder = new PrivateFolder(`${launcher} ${worldSize} ${named ?? `${place.jobId} ${launchedBy}`}`)
  return {
    description: `unix://${folder.socket}`,
    target: () => folder.target(),
    isSecretFresh: false,
    serve: async () => {
      const secret = randomBytes(32).toString('hex')
      folder.create(secret)
      await startHelper({ worldSize, secret, address: { kind: 'unix', path: folder.socket }, folder: folder.path })
    },
  }
}

/** A port on the machine of rank 0. */
function acrossMachines(place: ForeignPlace, environment: Environment): RendezvousEndpoint {
  const { launcher, worldSize, firstHost } = place
  const because = `${launcher} has started ranks on several machines`
  const masterPort = numberIn(environment, 'MASTER_PORT')
  const port = numberIn(environment, 'SHOAL_PORT') ?? (masterPort === undefined ? place.port : masterPort + 1)
  if (firstHost === undefined) {
    throw new LaunchEnvironmentError(
      `${because}, and does not say where rank 0 is. Set MASTER_ADDR to the name or address of its machine, on all ranks.`,
    )
  }
  if (port === undefined || port < 1 || port > 65_535) {
    throw new LaunchEnvironmentError(
      `${because}: set SHOAL_PORT, on all ranks, to a port from 1 to 65535 that is free on ${firstHost}` +
        (port === undefined ? '' : `; ${port} is none`),
    )
  }
  const secret = readSecret(environment, because)
  const address: Address = { kind: 'tcp', host: firstHost, port }
  return {
    description: formatAddress(address),
    target: () => ({ address, secret }),
    isSecretFresh: true,
    serve: async () => {
      const host = textIn(environment, 'SHOAL_LISTEN') ?? (firstHost.includes(':') ? '::' : '0.0.0.0')
      await startHelper({
        worldSize,
        secret: Buffer.from(secret).toString(),
        address: { kind: 'tcp', host, port },
        folder: undefined,
      })
    },
  }
}

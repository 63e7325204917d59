import { randomBytes } from 'node:crypto'
import { LaunchEnvironmentError, RendezvousError } from '../errors.js'
import { type Address, formatAddress } from '../rendezvous/address.js'
import { attempt, isRefused, type Target } from '../rendezvous/attempt.js'
import { type ConnectOptions, describeRefusal, sleep } from '../rendezvous/connect.js'
import { type Introducing, makeInstance } from '../rendezvous/handshake.js'
import { inUse, startHelper } from '../rendezvous/helper.js'
import { PrivateFolder } from '../rendezvous/privateFolder.js'
import { endingJobLimit } from '../rendezvous/timing.js'
import { identityOf, type JobIdentity, portsOf } from './identity.js'
import { launcherProcess } from './launcherProcess.js'
import type { ForeignPlace, RankPlace } from './place.js'
import { readSecret } from './shoal.js'
import { type Environment, numberIn, textIn } from './variables.js'

/** Address of a job's rendezvous, and how to serve it. */
export interface RendezvousEndpoint
  extends Pick<ConnectOptions, 'who' | 'targets' | 'place' | 'isServedByLauncher' | 'isSecretFresh' | 'hint'> {
  /** Rank 0 calls this first. */
  readonly serve: () => Promise<void>
}

/** Milliseconds for the server at one of our addresses to identify itself. */
const probeLimit = 2_000
/** Number of ports that a job tries if the user chose none. */
const mostPorts = 8

/** Returns the endpoint of a rendezvous that the launcher serves. */
export function servedByLauncher({ rank, worldSize }: RankPlace, target: Target): RendezvousEndpoint {
  const place = formatAddress(target.address)
  return {
    who: { rank, worldSize, pid: process.pid, instance: '', job: '', place: '', launch: '', localWorldSize: 0 },
    targets: () => [target],
    place,
    isServedByLauncher: true,
    isSecretFresh: true,
    hint: undefined,
    serve: async () => undefined,
  }
}

/** Returns the endpoint of a rendezvous that rank 0 serves. */
export function endpointFor(place: ForeignPlace, environment: Environment): RendezvousEndpoint {
  const identity = identityOf(place, environment)
  return place.isOneMachine ? onOneMachine(place, environment, identity) : acrossMachines(place, environment, identity)
}

function introducing({ rank, worldSize }: ForeignPlace, identity: JobIdentity): RendezvousEndpoint['who'] {
  return { rank, worldSize, pid: process.pid, instance: rank === 0 ? makeInstance() : '', ...identity }
}

/** Uses a socket in a private folder of this user. */
function onOneMachine(place: ForeignPlace, environment: Environment, identity: JobIdentity): RendezvousEndpoint {
  const { launcher, worldSize, rankVariable } = place
  const named = textIn(environment, 'SHOAL_JOB_ID')
  const launchedBy = rankVariable === undefined ? '' : launcherProcess(rankVariable)
  const folder = new PrivateFolder(`${launcher} ${worldSize} ${named ?? `${place.jobId} ${launchedBy}`}`)
  const who = introducing(place, identity)
  const description = `unix://${folder.socket}`
  return {
    who,
    targets: () => {
      const target = folder.target()
      return target === undefined ? [] : [target]
    },
    place: description,
    isServedByLauncher: false,
    isSecretFresh: false,
    hint: hintOnOneMachine(place, named),
    serve: async () => {
      await requireNoneStarting(folder, who)
      const secret = randomBytes(32).toString('hex')
      folder.create(secret)
      const address: Address = { kind: 'unix', path: folder.socket }
      const answer = await startHelper({ worldSize, secret, address, job: who, folder: folder.path })
      if (answer === inUse) throw new RendezvousError(`cannot serve a rendezvous at ${description}: it is in use`)
    },
  }
}

/**
 * Refuses to replace another job whose ranks have not all joined: they would connect to this job.
 *
 * @throws RendezvousError
 */
async function requireNoneStarting(folder: PrivateFolder, who: RendezvousEndpoint['who']): Promise<void> {
  const target = folder.target()
  if (target === undefined) return
  const outcome = await attempt(target, { ...who, role: 'rank' }, probeLimit, undefined)
  // Otherwise no server is left, or all ranks of that job have joined and keep their connections.
  if (!isRefused(outcome) || outcome.refusal !== 'starting') return
  throw new RendezvousError(`${formatAddress(target.address)}: ${describeRefusal(outcome)}`)
}

function hintOnOneMachine({ rankVariable, isGuess }: ForeignPlace, named: string | undefined): string | undefined {
  const guess =
    'Without LOCAL_WORLD_SIZE, and with no MASTER_ADDR or one of this machine alone, all ranks are taken to be on this machine; ' +
    'where they are not, give all of them the same MASTER_ADDR, a name that every machine knows'
  if (isGuess) return guess
  return named === undefined && rankVariable !== undefined
    ? 'Ranks that different processes have started need the same SHOAL_JOB_ID'
    : undefined
}

/** Uses a port on the machine of rank 0. */
function acrossMachines(place: ForeignPlace, environment: Environment, identity: JobIdentity): RendezvousEndpoint {
  const { launcher, worldSize, firstHost } = place
  const because = `${launcher} has started ranks on several machines`
  if (firstHost === undefined) {
    throw new LaunchEnvironmentError(
      `${because}, and does not say where rank 0 is. Set MASTER_ADDR to the name or address of its machine, on all ranks.`,
    )
  }
  const ports = portsFor(place, environment, identity, because, firstHost)
  const secret = readSecret(environment, because)
  const who = introducing(place, identity)
  const addresses = ports.map((port): Address & { kind: 'tcp' } => ({ kind: 'tcp', host: firstHost, port }))
  const serving = { own: undefined as Address | undefined }
  const first = formatAddress(addresses[0] as Address)
  return {
    who,
    targets: () => (serving.own === undefined ? addresses : [serving.own]).map((address) => ({ address, secret })),
    place: ports.length === 1 ? first : `${first} (or port ${ports.slice(1).join(', ')})`,
    isServedByLauncher: false,
    isSecretFresh: true,
    hint:
      `All ranks need the same MASTER_ADDR (here '${firstHost}': the machine of rank 0, by a name that every machine knows), the ` +
      'same SHOAL_PORT or MASTER_PORT, and the same SHOAL_SECRET',
    serve: async () => {
      const host = textIn(environment, 'SHOAL_LISTEN') ?? '::'
      const listen = ({ port }: { readonly port: number }) =>
        startHelper({
          worldSize,
          secret: Buffer.from(secret).toString(),
          address: { kind: 'tcp', host, port },
          job: who,
          folder: undefined,
        })
      serving.own = await serveAtOne(addresses, listen, { ...who, role: 'rank' }, secret)
    },
  }
}

/** Returns the ports for the ranks of this job: only the user's choice, or several that all ranks can compute. */
function portsFor(
  { launcher }: ForeignPlace,
  environment: Environment,
  identity: JobIdentity,
  because: string,
  firstHost: string,
): readonly number[] {
  const chosen = numberIn(environment, 'SHOAL_PORT')
  const masterPort = numberIn(environment, 'MASTER_PORT')
  const first = chosen ?? (masterPort === undefined ? undefined : masterPort + 1)
  if (first === undefined && launcher === 'slurm') return portsOf(identity, mostPorts)
  if (first === undefined || first < 1 || first > 65_535) {
    throw new LaunchEnvironmentError(
      `${because}: set SHOAL_PORT, on all ranks, to a port from 1 to 65535 that is free on ${firstHost}` +
        (first === undefined ? '' : `; ${first} is none`),
    )
  }
  return chosen === undefined ? [...new Set([first, ...portsOf(identity, mostPorts - 1)])] : [first]
}

/**
 * Serves at the first free address; skips addresses of other jobs.
 *
 * If the user chose the port, or the same job uses it, this retries for a while because an earlier job may be ending.
 * @throws RendezvousError
 */
async function serveAtOne<A extends Address>(
  addresses: readonly A[],
  listen: (address: A) => Promise<'ready' | typeof inUse>,
  who: Introducing,
  secret: Uint8Array,
): Promise<A> {
  const found: string[] = []
  for (const address of addresses) {
    const start = performance.now()
    for (;;) {
      if ((await listen(address)) === 'ready') return address
      const outcome = await attempt({ address, secret }, who, probeLimit, undefined, probeLimit)
      const isOurs = isRefused(outcome)
      if (typeof outcome === 'object' && !isOurs) outcome.socket.destroy()
      const isSame = isOurs && outcome.refusal !== 'job' && outcome.refusal !== 'secret'
      const words = isOurs
        ? describeRefusal(outcome)
        : typeof outcome === 'string'
          ? outcome
          : 'somebody else serves there'
      // If two jobs are starting, both must fail: each could receive ranks of the other.
      const limit = isOurs && outcome.refusal !== 'starting' ? endingJobLimit : 0
      const mayEnd = (isSame || addresses.length === 1) && performance.now() - start < limit
      if (mayEnd) {
        await sleep(200)
        continue
      }
      const failure = `cannot serve a rendezvous at ${formatAddress(address)}: EADDRINUSE, ${words}`
      if (isSame || addresses.length === 1) throw new RendezvousError(failure)
      found.push(failure)
      break
    }
  }
  throw new RendezvousError(`${found[0]}; nor at ${addresses.length - 1} other ports`)
}

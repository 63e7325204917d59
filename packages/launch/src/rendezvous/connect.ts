import { lstatSync } from 'node:fs'
import type { Socket } from 'node:net'
import { AbortedError, PeerRefusedError } from '@shoal/types'
import { RendezvousError, RendezvousLostError, RendezvousTimeoutError } from '../errors.js'
import { type Address, formatAddress } from './address.js'
import { attempt, isRefused, type Refused, silence, type Target } from './attempt.js'
import { type Admitted, Connection } from './connection.js'
import type { Introducing, Refusal } from './handshake.js'
import { endingJobLimit, strangerLimit } from './timing.js'

export interface ConnectOptions {
  readonly who: Omit<Introducing, 'role'>
  /** Possible addresses of the rendezvous; called before each round of attempts. */
  readonly targets: () => readonly Target[]
  /** These addresses in words. */
  readonly place: string
  /** Whether the rendezvous started before the ranks, so that its refusals are final. */
  readonly isServedByLauncher: boolean
  /**
   * Whether the secret is certainly this job's. If not, a refused secret may be an earlier job's, and is read again.
   */
  readonly isSecretFresh: boolean
  /** Hint in the error for a rendezvous that is not found. */
  readonly hint: string | undefined
  /** User ids that may serve a Unix socket. */
  readonly users: readonly number[]
  readonly timeout: number
  readonly signal: AbortSignal | undefined
}

const nothing = 'nothing was there'
/** Milliseconds for each of several ports. */
const oneOfSeveralLimit = 3_000

export const refusalWords: Readonly<Record<Refusal, string>> = {
  secret: 'this rank has another secret than the job (SHOAL_SECRET must be the same on all ranks)',
  job: 'another job lives there',
  worldSize: 'this rank was told another world size than the others',
  rank: 'the rank is beyond the world size',
  starting: 'another process is this rank already: two jobs of the same name start at once, or it was started twice',
  taken: 'another process is this rank already: was it started twice, or bootstrap() called twice?',
  gone: 'this rank has been part of the job and is gone; it cannot come back',
  launch:
    'two jobs have the same port and secret, or ranks of one machine were started apart: ' +
    'give each job a SHOAL_JOB_ID of its own, on all of its ranks',
  crowded:
    'LOCAL_WORLD_SIZE is wrong, or two jobs have the same port and secret: ' +
    'give each job a SHOAL_JOB_ID of its own, on all of its ranks',
}

/** Formats a refusal for an error. */
export function describeRefusal({ refusal, words }: Refused): string {
  return `${refusalWords[refusal]}${words === '' ? '' : ` (${words})`}`
}

/** Connects and proves the secret; retries until it succeeds or the limit ends. */
export async function connectTo(options: ConnectOptions): Promise<Connection> {
  const { who, place, timeout, signal, hint } = options
  const operation = `bootstrap of rank ${who.rank}`
  const deadline = performance.now() + timeout
  const refusedSince = new Map<Refusal, number>()
  let pause = 5
  let last = nothing
  for (;;) {
    if (signal?.aborted === true) throw new AbortedError({ operation, cause: signal.reason })
    const targets = options.targets()
    if (performance.now() >= deadline) {
      const words = `The rendezvous at ${place} was not reached: ${last}${hint === undefined ? '' : `. ${hint}`}`
      throw new RendezvousTimeoutError(operation, timeout, [], words)
    }
    for (const target of targets) {
      requireOwner(target.address, options.users)
      const left = deadline - performance.now()
      const limit = targets.length > 1 ? Math.min(left, oneOfSeveralLimit) : undefined
      const outcome = await attempt(target, { ...who, role: 'rank' }, left, signal, limit)
      if (isRefused(outcome)) {
        const { refusal } = outcome
        const now = performance.now()
        refusedSince.set(refusal, refusedSince.get(refusal) ?? now)
        if (now - (refusedSince.get(refusal) as number) >= patienceWith(refusal, options, targets.length)) {
          const address = formatAddress(target.address)
          throw new RendezvousError(`${address} refused rank ${who.rank}: ${describeRefusal(outcome)}`)
        }
        last = describeRefusal(outcome)
      } else if (typeof outcome === 'object') {
        const watch = await watchOver(outcome, target, options, deadline)
        return new Connection({ ...outcome, watch }, formatAddress(target.address), who.worldSize)
      } else if (outcome !== silence || last === nothing) {
        // The last attempt may have had too little time; an earlier result is more specific.
        last = outcome
      }
    }
    await sleep(Math.min(pause, Math.max(deadline - performance.now(), 0)), signal)
    pause = Math.min(pause * 2, 200)
  }
}

/**
 * Returns the milliseconds for which to retry after a refusal.
 *
 * It may come from an ending job or another user's job.
 */
function patienceWith(refusal: Refusal, options: ConnectOptions, ports: number): number {
  if (refusal === 'secret') return options.isSecretFresh ? (ports > 1 ? strangerLimit : 0) : Number.POSITIVE_INFINITY
  if (options.isServedByLauncher) return 0
  if (refusal === 'job') return ports > 1 ? Number.POSITIVE_INFINITY : endingJobLimit
  return refusal === 'taken' || refusal === 'gone' ? endingJobLimit : 0
}

/** Opens a rank's second connection to another machine. Loopback and Unix sockets end with their process. */
async function watchOver(
  { socket }: Admitted,
  target: Target,
  { who, place, timeout, signal }: ConnectOptions,
  deadline: number,
): Promise<Socket | undefined> {
  if (target.address.kind === 'unix' || isLoopback(socket.remoteAddress)) return undefined
  const fail = (error: Error): never => {
    socket.destroy()
    throw error
  }
  const operation = `bootstrap of rank ${who.rank}`
  for (let pause = 5; ; pause = Math.min(pause * 2, 200)) {
    if (signal?.aborted === true) fail(new AbortedError({ operation, cause: signal.reason }))
    const left = deadline - performance.now()
    if (left <= 0) fail(new RendezvousTimeoutError(operation, timeout, []))
    const outcome = await attempt(target, { ...who, role: 'watch' }, left, signal)
    if (isRefused(outcome)) {
      fail(new RendezvousLostError(`the rendezvous at ${place} has lost rank ${who.rank}: ${describeRefusal(outcome)}`))
    } else if (typeof outcome === 'object') {
      outcome.socket.resume()
      outcome.socket.unref()
      return outcome.socket
    }
    await sleep(Math.min(pause, Math.max(deadline - performance.now(), 0)), signal)
  }
}

function isLoopback(address: string | undefined): boolean {
  return address === undefined || address === '::1' || /^(?:::ffff:)?127\./.test(address)
}

/** Checks the owner of a socket file, who is the user that listens. @throws PeerRefusedError */
function requireOwner(address: Address, users: readonly number[]): void {
  if (address.kind !== 'unix') return
  let user: number
  try {
    user = lstatSync(address.path).uid
  } catch {
    return // connecting reports the reason
  }
  if (!users.includes(user)) throw new PeerRefusedError({ api: 'bootstrap', user, users })
}

export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    signal?.addEventListener('abort', end, { once: true })
  })
}

import { lstatSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { AbortedError, longestTimeout, PeerRefusedError } from '@shoal/types'
import { RanksLostError, RendezvousError, RendezvousLostError, RendezvousTimeoutError } from '../errors.js'
import { type Address, formatAddress, socketOptions } from './address.js'
import { type Header, headerRoom, type Message, maximumValueBytes, Reader, writeMessage } from './frames.js'
import {
  acceptanceBytes,
  greetingBytes,
  isAcceptance,
  makeIntroduction,
  type Refusal,
  readGreeting,
  refusals,
} from './handshake.js'

/** Who connects. */
export interface Identity {
  readonly rank: number
  readonly worldSize: number
}

/** Where to connect, with what secret; undefined where neither is there yet. */
export type Target = { readonly address: Address; readonly secret: Uint8Array }

export interface ConnectOptions {
  readonly identity: Identity
  /** Asked before each attempt. */
  readonly target: () => Target | undefined
  /** Where that is, in words. */
  readonly place: string
  /** Whether a refused secret may be an old one, and is tried again. */
  readonly isSecretFresh: boolean
  /** User ids that may serve a Unix socket. */
  readonly users: readonly number[]
  readonly timeout: number
  readonly signal: AbortSignal | undefined
}

export interface RequestOptions {
  readonly operation: string
  readonly timeout: number
  /** What an error gives as the limit, where a part of it had passed before. Default: the timeout. */
  readonly statedTimeout?: number | undefined
  readonly signal?: AbortSignal | undefined
}

interface Request {
  readonly operation: string
  readonly timeout: number
  readonly resolve: (message: Message) => void
  readonly reject: (error: unknown) => void
}

/** Milliseconds beyond its own limit that the server has to say who is missing. */
const answerLimit = 2_000
/** Milliseconds for the greeting of the server, unless less time is left. */
const handshakeLimit = 10_000

const nothing = 'nothing was there'
const silence = 'it does not answer'

const refusalWords: Readonly<Record<Refusal, string>> = {
  secret: 'this rank has another secret than the job (SHOAL_SECRET must be the same on all ranks)',
  worldSize: 'this rank was told another world size than the others',
  rank: 'the rank is beyond the world size',
  taken: 'another process is this rank already: was it started twice, or bootstrap() called twice?',
  gone: 'this rank has been part of the job and is gone; it cannot come back',
}

/** Connections that a process which runs to its end has to leave, or its rank would count as lost. */
const open = new Set<Connection>()

function leaveAll(): void {
  for (const connection of open) void connection.close(new RendezvousLostError('the process is ending'), true)
}

/** One rank's connection to the rendezvous. It keeps the process alive while an answer is awaited, and only then. */
export class Connection {
  readonly #socket: Socket
  readonly #reader: Reader
  readonly #requests = new Map<number, Request>()
  readonly #mostBytes: number
  /** All of them: a job that is made from an answer must not miss what came right behind it. */
  readonly #events: Header[] = []
  #nextId = 1
  #end: Error | undefined
  #onEvent: (header: Header) => void = () => undefined
  #onEnd: (error: RendezvousLostError) => void = () => undefined
  readonly place: string

  constructor({ socket, reader }: Admitted, place: string, worldSize: number) {
    this.#socket = socket
    this.#reader = reader
    this.place = place
    // The longest answer is that of a gathering: a value of each rank.
    this.#mostBytes = worldSize * maximumValueBytes + headerRoom
    socket.once('close', () => this.#ended('the connection ended'))
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk)
      this.#read()
    })
    this.#read()
    socket.resume()
    socket.unref()
    if (open.size === 0) process.on('beforeExit', leaveAll)
    open.add(this)
  }

  /** Who is told what the server says unasked, from the first such message on, and of the end of the connection. */
  listen(onEvent: (header: Header) => void, onEnd: (error: RendezvousLostError) => void): void {
    this.#onEvent = onEvent
    this.#onEnd = onEnd
    for (const event of this.#events) onEvent(event)
    if (this.#end instanceof RendezvousLostError) onEnd(this.#end)
  }

  request(header: Header, body: Uint8Array | undefined, options: RequestOptions): Promise<Message> {
    const { operation, timeout, signal } = options
    if (this.#end !== undefined) return Promise.reject(this.#end)
    if (signal?.aborted === true) return Promise.reject(new AbortedError({ operation, cause: signal.reason }))
    const id = this.#nextId
    this.#nextId += 1
    return new Promise<Message>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        this.#requests.delete(id)
        if (this.#requests.size === 0) this.#socket.unref()
      }
      const cancel = (error: Error): void => {
        settle()
        writeMessage(this.#socket, { op: 'cancel', id })
        reject(error)
      }
      const onAbort = (): void => cancel(new AbortedError({ operation, cause: signal?.reason }))
      signal?.addEventListener('abort', onAbort, { once: true })
      const stated = options.statedTimeout ?? timeout
      // The server answers at the limit; this is for one that does not.
      const expire = (): void => cancel(new RendezvousTimeoutError(operation, stated, []))
      const timer = setTimeout(expire, Math.min(timeout + answerLimit, longestTimeout))
      this.#requests.set(id, {
        operation,
        timeout: stated,
        resolve: (message) => {
          settle()
          resolve(message)
        },
        reject: (error) => {
          settle()
          reject(error)
        },
      })
      this.#socket.ref()
      writeMessage(this.#socket, { ...header, id, timeout }, body)
    })
  }

  /** Sends `bye` and ends the connection; `error` is what later requests get. `ended`: nobody asked for it, the program has ended. */
  async close(error: Error, ended = false): Promise<void> {
    if (this.#end !== undefined) return
    this.#forget(error)
    for (const request of [...this.#requests.values()]) request.reject(error)
    this.#socket.ref()
    await new Promise<void>((resolve) => {
      // A server that does not answer has had the time to read it.
      const timer = setTimeout(() => this.#socket.destroy(), answerLimit)
      this.#socket.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
      writeMessage(this.#socket, { op: 'bye', ended })
      this.#socket.end()
    })
  }

  #forget(end: Error): void {
    this.#end = end
    open.delete(this)
    if (open.size === 0) process.off('beforeExit', leaveAll)
  }

  #read(): void {
    try {
      for (;;) {
        const message = this.#reader.message(this.#mostBytes)
        if (message === undefined) return
        this.#received(message)
      }
    } catch (error) {
      this.#ended(`the rendezvous sent ${error instanceof Error ? error.message : String(error)}`)
      this.#socket.destroy()
    }
  }

  #received(message: Message): void {
    const { id, failure } = message.header
    if (typeof id !== 'number') {
      this.#events.push(message.header)
      this.#onEvent(message.header)
      return
    }
    const request = this.#requests.get(id)
    if (request === undefined) return // it was cancelled while the answer was on its way
    if (typeof failure === 'object' && failure !== null) request.reject(errorOf(failure as Header, request))
    else request.resolve(message)
  }

  #ended(why: string): void {
    if (this.#end !== undefined) return
    const error = new RendezvousLostError(`the rendezvous at ${this.place} is gone: ${why}`)
    this.#forget(error)
    for (const request of [...this.#requests.values()]) request.reject(error)
    this.#onEnd(error)
  }
}

function errorOf(failure: Header, request: Request): Error {
  const { kind, message } = failure
  const ranks = Array.isArray(failure['ranks']) ? failure['ranks'].filter((rank) => typeof rank === 'number') : []
  if (kind === 'timeout') return new RendezvousTimeoutError(request.operation, request.timeout, ranks)
  if (kind === 'lost' || kind === 'left') return new RanksLostError(ranks, kind, request.operation)
  return new RendezvousError(`${request.operation}: ${String(message)}`)
}

/** Connects and proves the secret, again and again until it works or the time is over. */
export async function connectTo(options: ConnectOptions): Promise<Connection> {
  const { identity, place, timeout, signal } = options
  const operation = `bootstrap of rank ${identity.rank}`
  const deadline = performance.now() + timeout
  let pause = 5
  let last = nothing
  for (;;) {
    if (signal?.aborted === true) throw new AbortedError({ operation, cause: signal.reason })
    const target = options.target()
    const left = deadline - performance.now()
    if (left <= 0) {
      throw new RendezvousTimeoutError(operation, timeout, [], `The rendezvous at ${place} was not reached: ${last}`)
    }
    if (target !== undefined) {
      requireOwner(target.address, options.users)
      const outcome = await attempt(target, identity, left, signal)
      if (typeof outcome !== 'string') return new Connection(outcome, formatAddress(target.address), identity.worldSize)
      if (isRefusal(outcome)) {
        const words = refusalWords[outcome]
        if (outcome !== 'secret' || options.isSecretFresh) {
          throw new RendezvousError(`${place} refused rank ${identity.rank}: ${words}`)
        }
        last = words
      } else if (outcome !== silence || last === nothing) {
        // The last attempt may have had no time to find out; what an earlier one found says more.
        last = outcome
      }
    }
    await sleep(Math.min(pause, Math.max(deadline - performance.now(), 0)), signal)
    pause = Math.min(pause * 2, 200)
  }
}

/** Whoever listens at a path has made the file there. @throws PeerRefusedError */
function requireOwner(address: Address, users: readonly number[]): void {
  if (address.kind !== 'unix') return
  let user: number
  try {
    user = lstatSync(address.path).uid
  } catch {
    return // the attempt to connect says why
  }
  if (!users.includes(user)) throw new PeerRefusedError({ api: 'bootstrap', user, users })
}

function isRefusal(outcome: string): outcome is Refusal {
  return (refusals as readonly string[]).includes(outcome)
}

/** A socket that is through the handshake, and what it has brought beyond. Paused. */
interface Admitted {
  readonly socket: Socket
  readonly reader: Reader
}

/** One attempt: a connection, or why there is none. */
function attempt(
  target: Target,
  { rank, worldSize }: Identity,
  timeout: number,
  signal: AbortSignal | undefined,
): Promise<Admitted | string> {
  const secret = Buffer.from(target.secret)
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: 10_000 }
  return new Promise((resolve) => {
    const socket = connect({ ...socketOptions(target.address), noDelay: true, ...keepAlive })
    const reader = new Reader()
    let serverNonce: Buffer | undefined
    let clientNonce: Buffer | undefined

    const finish = (outcome: Admitted | string): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      socket.off('error', onError).off('close', onClose).off('data', onData)
      socket.on('error', () => undefined) // 'close' follows, and tells all that matters
      if (typeof outcome === 'string') socket.destroy()
      resolve(outcome)
    }
    const onAbort = (): void => finish('aborted')
    const onError = (error: Error): void => finish(error.message)
    const onClose = (): void => finish('it closed the connection')
    const onData = (chunk: Buffer): void => {
      reader.push(chunk)
      const answer = step()
      if (answer !== undefined) finish(answer)
    }
    const start = performance.now()
    const giveUp = (): void => finish(silence)
    let timer = setTimeout(giveUp, Math.min(timeout, handshakeLimit))
    signal?.addEventListener('abort', onAbort, { once: true })
    socket.on('error', onError).on('close', onClose).on('data', onData)

    function step(): Admitted | string | undefined {
      if (serverNonce === undefined || clientNonce === undefined) {
        const greeting = reader.take(greetingBytes)
        if (greeting === undefined) return undefined
        serverNonce = readGreeting(greeting)
        if (serverNonce === undefined) return 'something else answers there'
        const introduction = makeIntroduction(secret, serverNonce, rank, worldSize)
        clientNonce = introduction.nonce
        socket.write(introduction.bytes)
        // The server may have let this rank in by now: one that went away again would be lost.
        clearTimeout(timer)
        timer = setTimeout(giveUp, Math.max(timeout - (performance.now() - start), 0))
      }
      const first = reader.peek()
      if (first === undefined) return undefined
      if (first !== 0) return refusals[first - 1] ?? 'something else answers there'
      const answer = reader.take(acceptanceBytes)
      if (answer === undefined) return undefined
      if (!isAcceptance(secret, serverNonce, clientNonce, answer)) {
        return 'what answers there does not know the secret of the job'
      }
      // Nobody listens until the connection takes over; nothing may get lost until then.
      socket.pause()
      return { socket, reader }
    }
  })
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
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

import { chmodSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  made,
  type OptionKeys,
  PublicObject,
  requireInteger,
  requireMade,
  requireOptions,
  requireText,
  wrongType,
} from '@shoal/types'
import { RendezvousError } from '../errors.js'
import { type Address, formatAddress, socketOptions } from './address.js'
import { Admission, type Denial, type ServedJob } from './admission.js'
import { headerRoom, maximumValueBytes, Reader, writeMessage } from './frames.js'
import {
  introductionBytes,
  makeAcceptance,
  makeBareRefusal,
  makeGreeting,
  makeRefusal,
  readIntroduction,
} from './handshake.js'
import { mostRanks, RendezvousState } from './state.js'
import { keepAliveDelay } from './timing.js'

/** Milliseconds in which a connection must have proven that it knows the secret. */
const handshakeLimit = 5_000
/** Connections that have not proven it yet: beyond so many, or twice the ranks of the job, the oldest is closed. */
const maxUnverified = 512
/**
 * In a job of so many ranks each loss is told at once. In a larger one, telling n ranks of n losses takes n² messages.
 */
const fewRanks = 64
/** Milliseconds between two announcements of losses in a larger job. */
const lossInterval = 20
/** So many times as long as telling of the last ones took, nobody is told of the next. */
const lossShare = 4

/** @internal For a rendezvous whose launcher does not serve it. */
export const listenForJob: unique symbol = Symbol('listenForJob')

const api = 'RendezvousServer.listen'
const keys: OptionKeys<ServerOptions> = {
  worldSize: true,
  secret: true,
  address: true,
  onRejected: true,
  onLost: true,
  onEmpty: true,
}

const notOurs = 'it does not speak the protocol'

/** How a rendezvous is served. */
export interface ServerOptions {
  /** Ranks of the job. */
  readonly worldSize: number
  /** What all ranks know and nobody else: at least 16 bytes. */
  readonly secret: Uint8Array
  /**
   * Where to listen; port 0 takes a free one. The file of a Unix socket gets mode 0600, for ranks of the same user.
   * Default: a free port of the loopback interface.
   */
  readonly address?: Address | undefined
  /** Told of each connection that was rejected, with the reason in words. */
  readonly onRejected?: ((reason: string) => void) | undefined
  /** Told of each rank whose connection ended without its having left. */
  readonly onLost?: ((rank: number) => void) | undefined
  /** Told when the last rank that was connected is gone. */
  readonly onEmpty?: (() => void) | undefined
}

/**
 * The rendezvous of a job, for launchers: ranks that know the secret exchange small values here. Other connections are
 * rejected and cannot delay the ranks: each has 5 seconds to prove the secret, may send no more than the proof until
 * then, and when there are too many the oldest is closed.
 *
 * @example
 * using server = await RendezvousServer.listen({ worldSize: 4, secret: randomBytes(32) })
 * console.log(formatAddress(server.address)) // for SHOAL_RENDEZVOUS
 */
export class RendezvousServer extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  readonly #options: ServerOptions
  readonly #secret: Buffer
  readonly #state: RendezvousState
  readonly #admission: Admission
  readonly #server: Server
  readonly #ranks = new Map<number, Socket>()
  /**
   * A second connection of each rank on another machine. Nothing is ever sent on it, so the kernel keeps asking the
   * other one.
   */
  readonly #watches = new Map<number, Socket>()
  readonly #unverified = new Set<Socket>()
  readonly #mostUnverified: number
  /** Ranks that are lost, and of whom nobody has been told yet; whether the launcher is to hear of it. */
  readonly #losses = new Map<number, boolean>()
  #lossTimer: NodeJS.Timeout | undefined
  /** When the next losses may be told, by the clock of `performance`. */
  #nextLosses = 0
  #isClosed = false

  private constructor(options: ServerOptions, job: ServedJob | undefined, key: typeof made) {
    requireMade(key, 'RendezvousServer', 'RendezvousServer.listen', 'symbol')
    super()
    this.#options = options
    this.#secret = Buffer.from(options.secret)
    this.#state = new RendezvousState(options.worldSize)
    this.#admission = new Admission(this.#state, job)
    this.#mostUnverified = Math.max(maxUnverified, 2 * options.worldSize)
    this.#server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveDelay }, (socket) =>
      this.#greet(socket),
    )
  }

  /** @throws TypeError, RangeError for wrong options; RendezvousError when the address cannot be listened on. */
  static listen(options: ServerOptions): Promise<RendezvousServer> {
    return RendezvousServer[listenForJob](options, undefined)
  }

  /** @internal */
  static async [listenForJob](options: ServerOptions, job: ServedJob | undefined): Promise<RendezvousServer> {
    const { secret, worldSize } = requireOptions(options, api, keys)
    requireInteger(worldSize, api, 'worldSize', 1, mostRanks)
    if (!(secret instanceof Uint8Array)) throw wrongType(api, 'secret', 'a Uint8Array', secret)
    requireInteger(secret.byteLength, api, 'secret.byteLength', 16)
    const rendezvous = new RendezvousServer(options, job, made)
    const address = options.address ?? { kind: 'tcp', host: '127.0.0.1', port: 0 }
    if (address.kind === 'unix') requireText(address.path, api, 'address.path')
    await new Promise<void>((resolve, reject) => {
      rendezvous.#server.once('error', (cause) =>
        reject(
          new RendezvousError(`cannot serve a rendezvous at ${formatAddress(address)}: ${cause.message}`, { cause }),
        ),
      )
      rendezvous.#server.listen({ ...socketOptions(address), backlog: 4096 }, resolve)
    })
    // The kernel lets nobody else connect, whatever the umask was.
    if (address.kind === 'unix') chmodSync(address.path, 0o600)
    // What accepting one connection fails with (no descriptor is left, say) must not end those that are there.
    rendezvous.#server.removeAllListeners('error')
    rendezvous.#server.on('error', (error) => options.onRejected?.(`a connection could not be taken: ${error.message}`))
    return rendezvous
  }

  /** Where it listens. @throws RendezvousError once it was disposed of. */
  get address(): Address {
    const address = this.#server.address()
    if (address === null) throw new RendezvousError('the rendezvous is closed')
    if (typeof address === 'string') return { kind: 'unix', path: address }
    return { kind: 'tcp', host: address.address, port: address.port }
  }

  /** Ranks that are connected. */
  get connected(): readonly number[] {
    return [...this.#ranks.keys()].sort((a, b) => a - b)
  }

  /**
   * To be called when a rank's process has ended, whether it ever connected or not. One that is connected counts as
   * lost unless it has left, however its process ended.
   */
  gone(rank: number, how: 'left' | 'lost'): void {
    // Whether it left is in what its connection has brought, which may not be read yet.
    if (how === 'lost') this.#lose(rank, false)
    else if (!this.#ranks.has(rank)) this.#state.gone(rank, how)
  }

  /** Ends all connections. Idempotent. */
  dispose(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#lossTimer)
    this.#server.close()
    for (const socket of [...this.#unverified, ...this.#ranks.values(), ...this.#watches.values()]) socket.destroy()
    this.#state.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  override [inspectKey](): string {
    return inspectLine('RendezvousServer', {
      address: this.#isClosed ? undefined : formatAddress(this.address),
      worldSize: this.#state.worldSize,
      connected: this.#ranks.size,
      disposed: this.#isClosed,
    })
  }

  #greet(socket: Socket): void {
    socket.on('error', () => undefined) // 'close' follows, and tells all that matters
    if (!this.#isClosed && this.#unverified.size >= this.#mostUnverified) {
      const [oldest] = this.#unverified
      if (oldest !== undefined) this.#reject(oldest, { reason: 'too many connections have not proven the secret' })
    }
    // Also where whoever was told of the rejection has just disposed of it.
    if (this.#isClosed) {
      socket.destroy()
      return
    }
    this.#unverified.add(socket)
    const reader = new Reader()
    const greeting = makeGreeting()
    const timer = setTimeout(
      () => this.#reject(socket, { reason: `it did not say who it is within ${handshakeLimit} ms` }),
      handshakeLimit,
    )
    const onData = (chunk: Buffer): void => {
      reader.push(chunk)
      const bytes = reader.take(introductionBytes)
      if (bytes === undefined) return
      clearTimeout(timer)
      socket.off('data', onData)
      this.#introduce(socket, reader, greeting.nonce, bytes)
    }
    socket.on('data', onData)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#unverified.delete(socket)
    })
    socket.write(greeting.bytes)
  }

  #introduce(socket: Socket, reader: Reader, nonce: Buffer, bytes: Buffer): void {
    const said = readIntroduction(this.#secret, nonce, bytes)
    // Nothing follows an introduction before it is answered; the client is none of ours if something does.
    if (said === undefined || reader.held > 0) {
      this.#reject(socket, { reason: notOurs })
      return
    }
    const denial = this.#admission.admit(said, `from ${peerOf(socket)}`)
    if (denial !== undefined) {
      const { refusal, words = '' } = denial
      const answer =
        refusal === undefined || refusal === 'secret'
          ? refusal && makeBareRefusal(refusal)
          : makeRefusal(this.#secret, nonce, said.nonce, refusal, words)
      this.#reject(socket, denial, answer)
      return
    }
    const { rank } = said
    this.#unverified.delete(socket)
    const acceptance = makeAcceptance(this.#secret, nonce, said.nonce)
    if (said.role === 'watch') {
      this.#watch(rank, socket, acceptance)
      return
    }
    this.#ranks.set(rank, socket)
    socket.write(acceptance)
    this.#state.connected(rank, (header, body) => {
      if (!socket.destroyed) writeMessage(socket, header, body)
    })
    this.#serve(rank, socket)
  }

  /**
   * Ends a rank's connection when its machine no longer answers, also where unacknowledged bytes would keep it for 15
   * minutes.
   */
  #watch(rank: number, socket: Socket, acceptance: Buffer): void {
    this.#watches.get(rank)?.destroy()
    this.#watches.set(rank, socket)
    socket.write(acceptance)
    socket.resume()
    socket.once('close', (isFailure: boolean) => {
      if (this.#watches.get(rank) !== socket) return
      this.#watches.delete(rank)
      // One that ends in order is ended by a rank whose first connection tells more.
      if (isFailure) this.#ranks.get(rank)?.destroy()
    })
  }

  #serve(rank: number, socket: Socket): void {
    const reader = new Reader()
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk)
      try {
        for (;;) {
          const message = reader.message(maximumValueBytes + headerRoom)
          if (message === undefined) return
          if (message.header['op'] === 'bye') {
            this.#state.gone(rank, message.header['ended'] === true ? 'ended' : 'left')
            socket.end()
            return
          }
          this.#state.received(rank, message.header, message.body)
        }
      } catch (error) {
        this.#options.onRejected?.(`rank ${rank} sent ${error instanceof Error ? error.message : String(error)}`)
        socket.destroy()
      }
    })
    socket.once('close', () => this.#ended(rank))
  }

  #ended(rank: number): void {
    this.#ranks.delete(rank)
    this.#watches.get(rank)?.destroy()
    if (this.#isClosed) return
    if (this.#state.presenceOf(rank) === 'joined' && !this.#losses.has(rank)) this.#lose(rank, true)
    if (this.#ranks.size > 0) return
    this.#tellLosses()
    this.#options.onEmpty?.()
  }

  /** Notes a loss. In a large job, losses that follow within moments are told together. */
  #lose(rank: number, isNews: boolean): void {
    if (this.#isClosed || this.#losses.has(rank)) return
    this.#losses.set(rank, isNews)
    if (this.#state.worldSize <= fewRanks) {
      this.#tellLosses()
      return
    }
    this.#lossTimer ??= setTimeout(() => this.#tellLosses(), Math.max(this.#nextLosses - performance.now(), 0))
  }

  #tellLosses(): void {
    clearTimeout(this.#lossTimer)
    this.#lossTimer = undefined
    if (this.#losses.size === 0) return
    const losses = [...this.#losses]
    this.#losses.clear()
    const start = performance.now()
    this.#state.gone(
      losses.map(([rank]) => rank),
      'lost',
    )
    const end = performance.now()
    this.#nextLosses = end + Math.max(lossInterval, lossShare * (end - start))
    for (const [rank, isNews] of losses) if (isNews) this.#options.onLost?.(rank)
  }

  #reject(socket: Socket, { reason }: Denial, answer?: Buffer): void {
    this.#unverified.delete(socket)
    this.#options.onRejected?.(`a connection from ${peerOf(socket)} was closed: ${reason}`)
    if (answer === undefined) socket.destroy()
    else socket.end(answer, () => socket.destroy())
  }
}

function peerOf({ remoteAddress = 'this machine', remotePort }: Socket): string {
  // An address of IPv4, as a socket for both has it.
  const address = remoteAddress.replace(/^::ffff:(?=\d)/, '')
  return remotePort === undefined ? address : `${address}:${remotePort}`
}

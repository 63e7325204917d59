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

/** Milliseconds for a connection to prove the secret. */
const handshakeLimit = 5_000
/** Most unproven connections, or twice the ranks of the job if that is more; the oldest is then closed. */
const maxUnverified = 512
/** Jobs up to this size report each loss immediately. In larger jobs, n ranks times n losses would take n² messages. */
const fewRanks = 64
/** Milliseconds between two reports of losses in a larger job. */
const lossInterval = 20
/** The pause after a report of losses, as a multiple of the time it took. */
const lossShare = 4

/** @internal Serves a rendezvous for a launcher without one. */
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

/** Options of {@link RendezvousServer}. */
export interface ServerOptions {
  /** Number of ranks of the job. */
  readonly worldSize: number
  /** Secret of the job, which only its ranks know; at least 16 bytes. */
  readonly secret: Uint8Array
  /**
   * Address on which to listen; port 0 selects a free port. Default: a free port of the loopback interface.
   *
   * The file of a Unix socket gets mode 0600, for ranks of the same user.
   */
  readonly address?: Address | undefined
  /** Called for each rejected connection, with the reason in words. */
  readonly onRejected?: ((reason: string) => void) | undefined
  /** Called for each rank whose connection ended although the rank has not left. */
  readonly onLost?: ((rank: number) => void) | undefined
  /** Called when the last connected rank has disconnected. */
  readonly onEmpty?: (() => void) | undefined
}

/**
 * The rendezvous of a job, for launchers: ranks with the secret exchange small values.
 *
 * Other connections are rejected and cannot delay the ranks. Each connection has 5 seconds to prove the secret and may
 * send only the proof before that. If there are too many unproven connections, the oldest is closed.
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
   * A second connection of each rank on another machine, without data, so that the kernel keeps probing the machine.
   */
  readonly #watches = new Map<number, Socket>()
  readonly #unverified = new Set<Socket>()
  readonly #mostUnverified: number
  /** Lost ranks that are not reported yet; the value says whether to call `onLost`. */
  readonly #losses = new Map<number, boolean>()
  #lossTimer: NodeJS.Timeout | undefined
  /** Earliest time of the next report of losses, by `performance.now()`. */
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

  /** Starts a rendezvous. @throws TypeError, RangeError for wrong options; RendezvousError if it cannot listen */
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
    // The kernel then refuses other users, whatever the umask was.
    if (address.kind === 'unix') chmodSync(address.path, 0o600)
    // A failed accept, for example without a free descriptor, must not end existing connections.
    rendezvous.#server.removeAllListeners('error')
    rendezvous.#server.on('error', (error) => options.onRejected?.(`a connection could not be taken: ${error.message}`))
    return rendezvous
  }

  /** Address of the rendezvous. @throws RendezvousError after dispose() */
  get address(): Address {
    const address = this.#server.address()
    if (address === null) throw new RendezvousError('the rendezvous is closed')
    if (typeof address === 'string') return { kind: 'unix', path: address }
    return { kind: 'tcp', host: address.address, port: address.port }
  }

  /** Connected ranks, ascending. */
  get connected(): readonly number[] {
    return [...this.#ranks.keys()].sort((a, b) => a - b)
  }

  /**
   * Reports that a rank's process has ended, whether or not it ever connected.
   *
   * A connected rank counts as lost unless it has left, even if its process ended normally.
   */
  gone(rank: number, how: 'left' | 'lost'): void {
    // A connected rank's data may contain its `bye`, which may not be read yet.
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
    socket.on('error', () => undefined) // 'close' follows with all necessary information
    if (!this.#isClosed && this.#unverified.size >= this.#mostUnverified) {
      const [oldest] = this.#unverified
      if (oldest !== undefined) this.#reject(oldest, { reason: 'too many connections have not proven the secret' })
    }
    // The handler of the rejection may have disposed of the server.
    if (this.#isClosed) {
      socket.destroy()
      return
    }
    this.#unverified.add(socket)
    const reader = new Reader()
    const greeting = makeGreeting()
    const timer = setTimeout(
      () => this.#reject(socket, { reason: `it did not identify itself within ${handshakeLimit} ms` }),
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
    // A client of this protocol sends nothing between its introduction and the answer.
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

  /** Ends a rank's connection when its machine stops answering; unacknowledged bytes could keep it for 15 minutes. */
  #watch(rank: number, socket: Socket, acceptance: Buffer): void {
    this.#watches.get(rank)?.destroy()
    this.#watches.set(rank, socket)
    socket.write(acceptance)
    socket.resume()
    socket.once('close', (isFailure: boolean) => {
      if (this.#watches.get(rank) !== socket) return
      this.#watches.delete(rank)
      // A normal end comes from the rank, whose first connection reports the details.
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

  /** Records a loss. In a large job, losses in quick succession are reported together. */
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
  // A dual-stack socket reports an IPv4 address with this prefix.
  const address = remoteAddress.replace(/^::ffff:(?=\d)/, '')
  return remotePort === undefined ? address : `${address}:${remotePort}`
}

import { rmSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import {
  AbortedError,
  DisposedError,
  inspectKey,
  inspectLine,
  isArray,
  isInstance,
  loadedFrom,
  made,
  type OptionKeys,
  type OwnedArrayOf,
  optionalOptions,
  outOfRange,
  PeerRefusedError,
  PublicObject,
  requireFunction,
  requireInteger,
  requireMade,
  requireOptions,
  type SystemError,
  settledNow,
  TimeoutError,
  usersWith,
  wrongType,
} from '@shoal/types'
import { systemError } from '../systemError.js'
import { nextTurn } from '../waiting/nextTurn.js'
import { waitForEvent } from '../waiting/waitForEvent.js'
import { readWaitOptions, type WaitOptions } from '../waiting/waitOptions.js'
import { closeAtThreadEnd, closeDescriptor } from './closeDescriptor.js'
import { type PeerOptions, peerKeys, requirePeer, usersIn } from './peers.js'
import { mustWait, requireDone, socketAddon } from './socketCalls.js'
import { type LimitedWait, limitedFromNow, restOf, Turns } from './turns.js'

/** One message to send through a {@link DescriptorSocket}. */
export interface DescriptorMessage {
  /** Bytes of the message, at most 1 MiB. Default: none. */
  readonly bytes?: Uint8Array | undefined
  /** File descriptors of this process, at most 64. The other process gets duplicates. Default: none. */
  readonly descriptors?: readonly number[] | undefined
}

/** One message received from a {@link DescriptorSocket}. The receiver must close the descriptors. */
export interface ReceivedMessage {
  /** The message. */
  readonly bytes: Uint8Array
  /** File descriptors that came with the message; the receiver must close them. */
  readonly descriptors: readonly number[]
}

const mostBytes = 1024 * 1024
const mostDescriptors = 64
/** Header of each message: its length and its number of descriptors. */
const headerBytes = 8
const notReady = 600

const sending = { api: 'DescriptorSocket.send', syscall: 'sendmsg' }
const receiving = { api: 'DescriptorSocket.receive', syscall: 'recvmsg' }
const accepting = { api: 'DescriptorServer.accept', syscall: 'accept' }

function failed({ api, syscall }: typeof sending, code: string): SystemError {
  return systemError(api, syscall, code)
}

/** Closes and reports sockets that were collected without dispose(). */
const leaked = new FinalizationRegistry<number>((descriptor) => {
  let outcome = 'it was closed now'
  try {
    closeDescriptor(descriptor)
  } catch (error) {
    outcome = `it could not be closed: ${String(error)}`
  }
  const message = `A socket (descriptor ${descriptor}) was dropped without dispose(); ${outcome}`
  process.emitWarning(message, { type: 'ShoalLeakWarning' })
})

/** Base class of Unix sockets: waits for readiness, closes once, refuses later calls. */
abstract class UnixSocket extends PublicObject {
  readonly #descriptor: number
  #isClosed = false

  protected constructor(descriptor: number) {
    super()
    this.#descriptor = descriptor
    closeAtThreadEnd(descriptor)
    leaked.register(this, descriptor, this)
  }

  /** Descriptor of the socket itself. @throws DisposedError */
  get descriptor(): number {
    if (this.#isClosed) throw new DisposedError(this.constructor.name)
    return this.#descriptor
  }

  get disposed(): boolean {
    return this.#isClosed
  }

  /** Closes the socket; pending waits reject with `DisposedError`. Idempotent. */
  dispose(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    leaked.unregister(this)
    this.#whenClosed.abort()
    closeDescriptor(this.#descriptor)
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  override [inspectKey](): string {
    return inspectLine('DescriptorSocket', { descriptor: this.#descriptor, disposed: this.#isClosed })
  }

  readonly #whenClosed = new AbortController()

  /** Repeats a system call until it does not return "try again". */
  protected async retry(
    call: (descriptor: number) => number,
    direction: 'read' | 'write',
    { api, syscall }: typeof sending,
    wait: LimitedWait,
  ): Promise<number> {
    const native = socketAddon()
    for (;;) {
      const result = call(this.descriptor)
      if (!mustWait(result)) return settledNow(requireDone(result, api, syscall))
      const query = direction === 'read' ? native.readyToReadAddress : native.readyToWriteAddress
      const signals = [this.#whenClosed.signal, ...(wait.signal === undefined ? [] : [wait.signal])]
      const event = BigInt(this.#descriptor)
      try {
        await waitForEvent(
          { context: 0n, event, query, notReady, what: api },
          { ...restOf(wait), signal: AbortSignal.any(signals) },
        )
      } catch (error) {
        if (this.#isClosed) throw new DisposedError(this.constructor.name)
        // The caller knows its whole limit, not the rest that was left.
        if (!(error instanceof TimeoutError)) throw error
        throw new TimeoutError({ operation: api, timeout: wait.timeout, ofDevice: false })
      }
    }
  }
}

/**
 * One end of a Unix socket that carries file descriptors to another process (`SCM_RIGHTS`).
 *
 * Use it to send exported memory and pools. Messages arrive whole and in order.
 *
 * @example
 * const [ours, theirs] = DescriptorSocket.pair()
 * const child = spawn(process.execPath, ['child.js'], { stdio: ['inherit', 'inherit', 'inherit', theirs.descriptor] })
 * theirs.dispose()
 * await ours.send({ bytes: Buffer.from('hello'), descriptors: [descriptor] })
 */
export class DescriptorSocket extends UnixSocket {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  readonly #receiving = new Turns()
  readonly #sending = new Turns()
  /** True after a wait ended within a message: later bytes would be read as the start of a message. */
  readonly #isCut = { sending: false, receiving: false }

  private constructor(descriptor: number, key: typeof made) {
    requireMade(key, 'DescriptorSocket', 'DescriptorSocket.pair, connect or adopt', 'symbol')
    super(descriptor)
  }

  /**
   * Returns two connected ends.
   *
   * Pass the descriptor of one end to a child process: `stdio: ['inherit', 'inherit', 'inherit', end.descriptor]`.
   */
  static pair(): [DescriptorSocket, DescriptorSocket] {
    const result = socketAddon().socketPair()
    if (typeof result === 'number') throw systemError('DescriptorSocket.pair', 'socketpair', getSystemErrorName(result))
    return [new DescriptorSocket(result[0], made), new DescriptorSocket(result[1], made)]
  }

  /**
   * Connects to a socket that another process listens on.
   *
   * @param path a file, or a name in Linux's abstract name space, which starts with `'\0'`.
   * @throws SystemError with `code`, such as `'ENOENT'` or `'ECONNREFUSED'`; PeerRefusedError if the listening process
   * belongs to a user who is not accepted.
   */
  static connect(path: string, options?: PeerOptions): DescriptorSocket {
    const api = 'DescriptorSocket.connect'
    const users = usersIn(options, api)
    const socket = new DescriptorSocket(
      requireDone(socketAddon().openSocket(requirePath(path, api), false), api, 'connect', path),
      made,
    )
    try {
      requirePeer(socket.descriptor, users, api)
    } catch (error) {
      socket.dispose()
      throw error
    }
    return socket
  }

  /**
   * Takes over an open socket, such as descriptor 3 inherited from a parent process.
   *
   * @throws SystemError; PeerRefusedError if the other end belongs to a user who is not accepted. The descriptor then
   * stays open.
   */
  static adopt(descriptor: number, options?: PeerOptions): DescriptorSocket {
    const api = 'DescriptorSocket.adopt'
    requireDescriptor(descriptor, api, 'descriptor')
    const users = usersIn(options, api)
    requireDone(socketAddon().adoptSocket(descriptor), api, 'getsockname')
    requirePeer(descriptor, users, api)
    return new DescriptorSocket(descriptor, made)
  }

  /** @internal */
  static _accepted(descriptor: number): DescriptorSocket {
    return new DescriptorSocket(descriptor, made)
  }

  /**
   * Sends one message, after all earlier messages.
   *
   * The descriptors may be closed when the promise has resolved. A call whose limit ends before its turn sends nothing.
   * If a wait ended within a message, all later calls reject with `code` `'EPROTO'`; close the socket then.
   */
  send(message: DescriptorMessage, options?: WaitOptions): Promise<void> {
    const frame = checkMessage(message)
    const wait = limitedFromNow(readWaitOptions(options, 'DescriptorSocket.send'))
    return this.#sending.run(wait, sending.api, () => this.#send(frame.bytes, frame.descriptors, wait))
  }

  /**
   * Resolves with the next message; calls run one after another.
   *
   * A call whose limit ends before its turn takes no message. If a wait ended within a message, all later calls reject
   * with `code` `'EPROTO'`; close the socket then.
   * @throws SystemError with `code` `'ECONNRESET'` when the other end is closed; AbortedError, TimeoutError,
   * DisposedError.
   */
  receive(options?: WaitOptions): Promise<ReceivedMessage> {
    const wait = limitedFromNow(readWaitOptions(options, 'DescriptorSocket.receive'))
    return this.#receiving.run(wait, receiving.api, () => this.#receive(wait))
  }

  async #send(bytes: Uint8Array, descriptors: readonly number[], wait: LimitedWait): Promise<void> {
    const native = socketAddon()
    if (this.#isCut.sending) throw failed(sending, 'EPROTO')
    let sent = 0
    try {
      while (sent < bytes.length) {
        const rest = bytes.subarray(sent)
        // The first byte carries the descriptors.
        const list = sent === 0 ? descriptors : []
        sent += await this.retry((own) => native.sendSocket(own, rest, list), 'write', sending, wait)
      }
    } catch (error) {
      this.#isCut.sending = sent > 0
      throw error
    }
  }

  async #receive(wait: LimitedWait): Promise<ReceivedMessage> {
    if (this.#isCut.receiving) throw failed(receiving, 'EPROTO')
    const descriptors: number[] = []
    try {
      const header = await this.#read(headerBytes, descriptors, mostDescriptors, wait)
      const view = new DataView(header.buffer)
      const length = view.getUint32(0, true)
      const count = view.getUint32(4, true)
      if (length > mostBytes || count > mostDescriptors || count !== descriptors.length) {
        this.#isCut.receiving = true
        throw failed(receiving, 'EPROTO')
      }
      return { bytes: await this.#read(length, descriptors, count, wait, true), descriptors }
    } catch (error) {
      for (const descriptor of descriptors) closeDescriptor(descriptor)
      throw error
    }
  }

  async #read(
    length: number,
    descriptors: number[],
    most: number,
    wait: LimitedWait,
    isWithin = false,
  ): Promise<OwnedArrayOf<'u8'>> {
    const native = socketAddon()
    const bytes = new Uint8Array(length)
    let received = 0
    try {
      while (received < length) {
        const rest = bytes.subarray(received)
        const take = (own: number): number => native.receiveSocket(own, rest, descriptors)
        const count = await this.retry(take, 'read', receiving, wait)
        // A peer can send descriptors with any byte, and more than it announced.
        if (descriptors.length > most) throw failed(receiving, 'EPROTO')
        if (count === 0) throw failed(receiving, 'ECONNRESET')
        received += count
      }
    } catch (error) {
      const isClosed = (error as NodeJS.ErrnoException).code === 'ECONNRESET'
      const isCut = isWithin || received > 0 || descriptors.length > most
      if (!isClosed && isCut) this.#isCut.receiving = true
      throw error
    }
    return bytes
  }
}

/** Options of {@link DescriptorServer}. */
export interface DescriptorServerOptions extends PeerOptions {
  /** Called for each refused process. Default: a process warning for the first one. */
  readonly onRefused?: ((error: PeerRefusedError) => void) | undefined
}

const serverKeys: OptionKeys<DescriptorServerOptions> = { ...peerKeys, onRefused: true }

function warnOnce(): (error: PeerRefusedError) => void {
  let isTold = false
  return (error) => {
    if (!isTold) process.emitWarning(error.message, { type: 'ShoalWarning', code: error.code })
    isTold = true
  }
}

/**
 * A Unix socket that accepts processes of this user and of the users in `users`.
 *
 * @example
 * using server = DescriptorServer.listen('/run/user/1000/trainer.sock', { users: [1001] })
 * using socket = await server.accept({ timeout: 10_000 })
 */
export class DescriptorServer extends UnixSocket {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** Path or abstract name of the socket. */
  readonly path: string
  readonly #users: readonly number[]
  readonly #onRefused: (error: PeerRefusedError) => void

  private constructor(descriptor: number, path: string, users: readonly number[], onRefused = warnOnce()) {
    requireMade(users, 'DescriptorServer', 'DescriptorServer.listen', 'object')
    super(descriptor)
    this.path = path
    this.#users = users
    this.#onRefused = onRefused
  }

  /**
   * Listens at a path.
   *
   * Creates a file there, which dispose() removes. The owner can connect, and users who can enter its folder.
   * @throws SystemError with `code`, such as `'EADDRINUSE'`.
   */
  static listen(path: string, options?: DescriptorServerOptions): DescriptorServer {
    const api = 'DescriptorServer.listen'
    const checked = optionalOptions(options, api, serverKeys)
    const { onRefused } = checked
    if (onRefused !== undefined) requireFunction(onRefused, api, 'onRefused')
    const users = usersWith(checked.users, api)
    const descriptor = requireDone(socketAddon().openSocket(requirePath(path, api), true), api, 'bind', path)
    return new DescriptorServer(descriptor, path, users, onRefused)
  }

  /**
   * Resolves with the next process that connects.
   *
   * A process of a user who is not accepted is refused and reported to `onRefused`. The wait continues, so other users
   * cannot make it fail.
   * @throws SystemError, AbortedError, TimeoutError, DisposedError
   */
  async accept(options?: WaitOptions): Promise<DescriptorSocket> {
    const wait = limitedFromNow(readWaitOptions(options, accepting.api))
    const { end, timeout } = wait
    for (;;) {
      const accepted = await this.retry((own) => socketAddon().acceptSocket(own), 'read', accepting, wait)
      try {
        requirePeer(accepted, this.#users, accepting.api)
        return DescriptorSocket._accepted(accepted)
      } catch (error) {
        closeDescriptor(accepted)
        // Other errors mean that the connection is already closed.
        if (error instanceof PeerRefusedError) this.#onRefused(error)
      }
      // A process that reconnects repeatedly must not block the event loop, the signal or the limit.
      await nextTurn()
      if (wait.signal?.aborted === true)
        throw new AbortedError({ operation: accepting.api, ofDevice: false, cause: wait.signal.reason })
      if (end !== undefined && performance.now() >= end)
        throw new TimeoutError({ operation: accepting.api, timeout, ofDevice: false })
    }
  }

  override [inspectKey](): string {
    return inspectLine('DescriptorServer', { path: this.path, disposed: this.disposed })
  }

  override dispose(): void {
    if (this.disposed) return
    super.dispose()
    // The file may already be removed.
    if (!this.path.startsWith('\0')) rmSync(this.path, { force: true })
  }
}

function requirePath(path: string, api: string): string {
  if (typeof path !== 'string') throw wrongType(api, 'path', 'a string', path)
  if (path === '') throw outOfRange(api, 'path', 'a string that is not empty', path)
  if (path.includes('\0', 1))
    throw new TypeError(`${api}: path must be a string without NUL characters after its start`)
  return path
}

const messageKeys: OptionKeys<DescriptorMessage> = { bytes: true, descriptors: true }

function checkMessage(message: DescriptorMessage): { bytes: Uint8Array; descriptors: readonly number[] } {
  const api = 'DescriptorSocket.send'
  const { bytes = new Uint8Array(0), descriptors = [] } = requireOptions(message, api, messageKeys, 'message')
  if (!isInstance(bytes, Uint8Array)) throw wrongType(api, 'bytes', 'a Uint8Array', bytes)
  if (!isArray(descriptors)) throw wrongType(api, 'descriptors', 'an array', descriptors)
  requireInteger(bytes.length, api, 'bytes.length', 0, mostBytes)
  requireInteger(descriptors.length, api, 'descriptors.length', 0, mostDescriptors)
  for (const [index, descriptor] of descriptors.entries()) requireDescriptor(descriptor, api, `descriptors[${index}]`)
  const frame = new Uint8Array(headerBytes + bytes.length)
  const view = new DataView(frame.buffer)
  view.setUint32(0, bytes.length, true)
  view.setUint32(4, descriptors.length, true)
  frame.set(bytes, headerBytes)
  return { bytes: frame, descriptors: [...descriptors] }
}

function requireDescriptor(value: unknown, api: string, name: string): number {
  return requireInteger(value, api, name, 0, 2 ** 31 - 1)
}

import type { Socket } from 'node:net'
import { AbortedError, longestTimeout } from '@shoal/types'
import { RanksLostError, RendezvousError, RendezvousLostError, RendezvousTimeoutError } from '../errors.js'
import { type Header, headerRoom, type Message, maximumValueBytes, type Reader, writeMessage } from './frames.js'
/** A paused socket after the handshake, and the data received after it. */
export interface Admitted {
  readonly socket: Socket
  readonly reader: Reader
  /** A second connection without data, to a rendezvous on another machine. */
  readonly watch?: Socket | undefined
}

export interface RequestOptions {
  readonly operation: string
  readonly timeout: number
  /** Limit to state in an error, if a part of it passed before the request. Default: the timeout. */
  readonly statedTimeout?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Hint in the error for missing ranks. */
  readonly hint?: string | undefined
}

interface Request {
  readonly operation: string
  readonly timeout: number
  readonly hint: string | undefined
  readonly resolve: (message: Message) => void
  readonly reject: (error: unknown) => void
}

/** Milliseconds beyond the limit for the server to name the missing ranks. */
const answerLimit = 2_000
/** Open connections, which must leave when the process ends normally; their ranks would otherwise count as lost. */
const open = new Set<Connection>()

function leaveAll(): void {
  for (const connection of open) void connection.close(new RendezvousLostError('the process is ending'), true)
}

/** A rank's connection to the rendezvous. It keeps the process alive only while an answer is pending. */
export class Connection {
  readonly #socket: Socket
  readonly #reader: Reader
  readonly #requests = new Map<number, Request>()
  readonly #mostBytes: number
  /** All events so far, because a job made from an answer must not miss events that arrived directly after it. */
  readonly #events: Header[] = []
  #nextId = 1
  #end: Error | undefined
  #onEvent: (header: Header) => void = () => undefined
  #onEnd: (error: RendezvousLostError) => void = () => undefined
  readonly place: string

  constructor({ socket, reader, watch }: Admitted, place: string, worldSize: number) {
    this.#socket = socket
    this.#reader = reader
    this.place = place
    // The longest answer is that of `gather`: one value per rank.
    this.#mostBytes = worldSize * maximumValueBytes + headerRoom
    socket.once('close', () => {
      watch?.destroy()
      this.#ended('the connection ended')
    })
    watch?.once('close', (isFailure: boolean) => {
      // Unacknowledged bytes would keep the first connection open for 15 minutes.
      if (!isFailure || socket.destroyed) return
      this.#ended('its machine does not answer')
      socket.destroy()
    })
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

  /** Sets the handlers for server events, earlier ones included, and for the end. */
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
      // The server answers at its limit; this handles a server that does not answer.
      const expire = (): void => cancel(new RendezvousTimeoutError(operation, stated, []))
      const timer = setTimeout(expire, Math.min(timeout + answerLimit, longestTimeout))
      this.#requests.set(id, {
        operation,
        timeout: stated,
        hint: options.hint,
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

  /**
   * Sends `bye` and ends the connection; later requests reject with `error`.
   *
   * `ended` means that the program ended without a request to leave.
   */
  async close(error: Error, ended = false): Promise<void> {
    if (this.#end !== undefined) return
    this.#forget(error)
    for (const request of [...this.#requests.values()]) request.reject(error)
    this.#socket.ref()
    await new Promise<void>((resolve) => {
      // By now even a server that does not answer can have read `bye`.
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
    if (request === undefined) return // cancelled while the answer was in flight
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
  if (kind === 'timeout') {
    const details = [message, request.hint].filter((text) => typeof text === 'string')
    const detail = details.length === 0 ? undefined : details.join('. ')
    return new RendezvousTimeoutError(request.operation, request.timeout, ranks, detail)
  }
  if (kind === 'lost' || kind === 'left') return new RanksLostError(ranks, kind, request.operation)
  return new RendezvousError(`${request.operation}: ${String(message)}`)
}

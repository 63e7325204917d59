import type { MessagePort } from 'node:worker_threads'
import { type BackgroundWork, type DescriptorSocket, inNextTurn } from '@shoal/ffi'
import { propertyOf, SystemError } from '@shoal/types'
import type { Exported, LinkMessage } from './description.js'
import { receiveMessage, sendDescription } from './overSocket.js'

/** What two sides of one share talk over, and nobody else. When one is gone the other hears of it. */
export interface Link {
  send(data: object, signal: AbortSignal): Promise<void>
  sendMemory(exported: Exported, signal: AbortSignal): Promise<void>
  receive(signal: AbortSignal): Promise<LinkMessage>
  /** Resolves when the other side has closed it or has ended. Does not keep the process alive. */
  whenClosed(): Promise<void>
  close(): void
}

/** The error for a side that ended while the other one waited for it. */
export function peerEnded(api: string): SystemError {
  const cause = Object.assign(new Error('the other side has ended'), { code: 'ECONNRESET', syscall: 'read' })
  return new SystemError({ api, cause })
}

/** Whether an error says that the other end of a link is closed, or that nobody is there. */
export function isGone(error: unknown): boolean {
  return ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(String(propertyOf(error, 'code')))
}

/** Between processes. */
export class SocketLink implements Link {
  readonly #socket: DescriptorSocket

  constructor(socket: DescriptorSocket) {
    this.#socket = socket
  }

  send(data: object, signal: AbortSignal): Promise<void> {
    return this.#socket.send({ bytes: Buffer.from(JSON.stringify(data)) }, { signal })
  }

  sendMemory(exported: Exported, signal: AbortSignal): Promise<void> {
    return sendDescription(this.#socket, exported, { signal })
  }

  receive(signal: AbortSignal): Promise<LinkMessage> {
    return receiveMessage(this.#socket, signal)
  }

  async whenClosed(): Promise<void> {
    const background: BackgroundWork = {}
    const ended = this.#socket.receive({ background } as { signal?: AbortSignal })
    inNextTurn(() => background.release?.())
    await ended.then(
      () => undefined,
      () => undefined,
    )
  }

  close(): void {
    this.#socket.dispose()
  }
}

/** Between threads of one process. */
export class PortLink implements Link {
  readonly #port: MessagePort
  readonly #messages: unknown[] = []
  readonly #closed: Promise<void>
  #isClosed = false
  #wake: () => void = () => undefined

  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (message) => {
      this.#messages.push(message)
      this.#wake()
    })
    this.#closed = new Promise((resolve) => {
      port.once('close', () => {
        this.#isClosed = true
        this.#wake()
        resolve()
      })
    })
  }

  async send(data: object): Promise<void> {
    this.#port.postMessage(data)
  }

  async sendMemory({ description }: Exported): Promise<void> {
    this.#port.postMessage(description)
  }

  async receive(signal: AbortSignal): Promise<LinkMessage> {
    while (this.#messages.length === 0) {
      signal.throwIfAborted()
      if (this.#isClosed) throw peerEnded('DescriptorSocket.receive')
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
    }
    return { data: this.#messages.shift(), descriptors: [] }
  }

  whenClosed(): Promise<void> {
    this.#port.unref()
    return this.#closed
  }

  close(): void {
    this.#port.close()
  }
}

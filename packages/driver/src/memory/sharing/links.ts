import type { MessagePort } from 'node:worker_threads'
import { type BackgroundWork, closeDescriptor, type DescriptorSocket, inNextTurn } from '@shoal/ffi'
import { offerToThreads, type ThreadOffer } from '@shoal/ffi/calls'
import { propertyOf, SystemError } from '@shoal/types'
import { type Exported, type LinkMessage, type ThreadDescription, waysOfPort } from './description.js'
import { receiveMessage, sendDescription } from './overSocket.js'

/** A private connection between the two sides of one share. Each side notices when the other ends. */
export interface Link {
  send(data: object, signal: AbortSignal): Promise<void>
  sendMemory(exported: Exported, signal: AbortSignal): Promise<void>
  /** Resolves with the next message. The caller closes its descriptors. */
  receive(signal: AbortSignal): Promise<LinkMessage>
  /** Resolves with the next message, which should have no descriptors. Closes any descriptors it has. */
  hear(signal: AbortSignal): Promise<unknown>
  /** Resolves when the other side closed the link or ended. Does not keep the process alive. */
  whenClosed(): Promise<void>
  close(): void
}

/** Returns the error for a side that ended while the other waited for it. */
export function peerEnded(api: string): SystemError {
  const cause = Object.assign(new Error('the other side has ended'), { code: 'ECONNRESET', syscall: 'read' })
  return new SystemError({ api, cause })
}

/** Whether an error means that the other end of a link is closed or does not exist. */
export function isGone(error: unknown): boolean {
  return ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(String(propertyOf(error, 'code')))
}

/** A link between processes. */
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

  async hear(signal: AbortSignal): Promise<unknown> {
    const { data, descriptors } = await this.receive(signal)
    for (const descriptor of descriptors) closeDescriptor(descriptor)
    return data
  }

  async whenClosed(): Promise<void> {
    const background: BackgroundWork = {}
    const ended = this.#socket.receive({ background } as { signal?: AbortSignal })
    inNextTurn(() => background.release?.())
    await ended.then(
      // No further message is expected. If one arrives, do not wait any longer.
      ({ descriptors }) => descriptors.forEach(closeDescriptor),
      () => undefined,
    )
  }

  close(): void {
    this.#socket.dispose()
  }
}

/** A link between threads of one process. */
export class PortLink implements Link {
  readonly #port: MessagePort
  readonly #messages: unknown[] = []
  readonly #closed: Promise<void>
  #isClosed = false
  #offer: ThreadOffer | undefined
  #wake: () => void = () => undefined

  constructor(port: MessagePort) {
    this.#port = port
    const heard = (message: unknown): void => {
      this.#messages.push(message)
      this.#wake()
    }
    port.on('message', heard)
    // Treat an unreadable message as a wrong one.
    port.on('messageerror', () => heard(undefined))
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

  /** The description stays in this process, because a port's messages can be copies of foreign data. */
  async sendMemory({ description }: Exported): Promise<void> {
    this.#offer = offerToThreads(JSON.stringify(description))
    const { type, version } = description
    const { key: offer } = this.#offer
    this.#port.postMessage({ type, version, way: 'process', offer } satisfies ThreadDescription)
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
    return { data: this.#messages.shift(), descriptors: [], ways: waysOfPort }
  }

  async hear(signal: AbortSignal): Promise<unknown> {
    return (await this.receive(signal)).data
  }

  whenClosed(): Promise<void> {
    this.#port.unref()
    return this.#closed
  }

  close(): void {
    this.#offer?.withdraw()
    this.#port.close()
  }
}

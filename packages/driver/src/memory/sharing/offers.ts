import { randomBytes } from 'node:crypto'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { DescriptorServer, DescriptorSocket } from '@shoal/ffi'
import { propertyOf, wrongType } from '@shoal/types'
import { isThread, listen, type ProcessChannel, post, type SharingChannel, type ThreadChannel } from './channel.js'
import { isGone, type Link, PortLink, peerEnded, SocketLink } from './links.js'

/**
 * The message that announces a share on a channel. All other messages belong to the program.
 *
 * The other side may not listen yet. So each side sends a message when it starts, and the sharing side repeats its
 * offer for each request. The receiver ignores an offer whose id it has already taken.
 */
interface Offer {
  readonly shoal: 'share'
  readonly version: 1
  readonly id: string
  /** Path of the abstract socket on which the sender listens. */
  readonly path?: string
  readonly port?: MessagePort
}

const namesOfShares = '\0shoal-share-'

const asking = { shoal: 'receive' } as const

/** Ids of the newest offers that were taken from a channel. */
const seen = new WeakMap<object, Set<unknown>>()
const mostSeen = 64

function isSeen(channel: object, id: unknown): boolean {
  return seen.get(channel)?.has(id) === true
}

function see(channel: object, id: unknown): void {
  const known = seen.get(channel) ?? new Set()
  seen.set(channel, known.add(id))
  for (const oldest of known) if (known.size > mostSeen) known.delete(oldest)
}

/** Offers a new port for each request. Resolves with the port that the other side answers. */
export async function offerPorts(channel: ThreadChannel, signal: AbortSignal, api: string): Promise<Link> {
  const id = randomBytes(16).toString('hex')
  const links = new Set<Link>()
  let stop = (): void => undefined
  const answered = new Promise<Link>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    const offer = (): void => {
      const { port1, port2 } = new MessageChannel()
      const link = new PortLink(port1)
      links.add(link)
      link.hear(signal).then(
        (answer) => (isReady(answer) ? resolve(link) : reject(notReady(answer, api))),
        () => {
          links.delete(link)
          link.close()
          // The other side may close a port that it does not need and answer another one. If the channel closes, all
          // ports close.
          if (links.size === 0) reject(peerEnded(api))
        },
      )
      post(channel, { shoal: 'share', version: 1, id, port: port2 } satisfies Offer, port2)
    }
    stop = listen(channel, asking.shoal, offer)
    offer()
  })
  let chosen: Link | undefined
  try {
    chosen = await answered
    return chosen
  } finally {
    stop()
    for (const link of links) if (link !== chosen) link.close()
  }
}

function isReady(answer: unknown): boolean {
  return propertyOf(answer, 'type') === 'ready'
}

function notReady(answer: unknown, api: string): TypeError {
  return wrongType(api, 'message', 'that the other side is ready', answer)
}

export async function offerSocket(channel: ProcessChannel, signal: AbortSignal, api: string): Promise<Link> {
  const id = randomBytes(16).toString('hex')
  // An abstract socket leaves no file behind if this process is killed. The kernel reports the identity of the other
  // end.
  const server = DescriptorServer.listen(`${namesOfShares}${id}`)
  const offer = (): void => post(channel, { shoal: 'share', version: 1, id, path: server.path } satisfies Offer)
  const stop = listen(channel, asking.shoal, offer)
  try {
    offer()
    const link = new SocketLink(await server.accept({ signal }))
    try {
      const answer = await link.hear(signal)
      if (!isReady(answer)) throw notReady(answer, api)
      return link
    } catch (error) {
      link.close()
      throw error
    }
  } finally {
    stop()
    server.dispose()
  }
}

/** The offers on a channel, each once, from the first request until `close`. */
export class Offers {
  readonly #channel: SharingChannel
  readonly #waiting: unknown[] = []
  readonly #stops: readonly (() => void)[]
  #wake: () => void = () => undefined

  /** @param ended called when the other side has ended */
  constructor(channel: SharingChannel, ended: () => void) {
    this.#channel = channel
    const stopListening = listen(channel, 'share', (offer) => {
      this.#waiting.push(offer)
      this.#wake()
    })
    this.#stops = [stopListening, ask(channel, ended)]
  }

  async next(signal: AbortSignal): Promise<unknown> {
    for (;;) {
      signal.throwIfAborted()
      if (this.#waiting.length === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
        continue
      }
      const offer = this.#waiting.shift()
      const id = propertyOf(offer, 'id')
      if (!isSeen(this.#channel, id)) {
        if (typeof id === 'string') see(this.#channel, id)
        return offer
      }
      closePort(offer)
    }
  }

  close(): void {
    for (const stop of this.#stops) stop()
    // Unseen offers are not closed: the sender repeats them for the next request.
    for (const offer of this.#waiting) if (isSeen(this.#channel, propertyOf(offer, 'id'))) closePort(offer)
  }
}

/**
 * Requests offers. Sends a port along to a thread: the port closes with the other side, which a closed channel itself
 * does not report.
 */
function ask(channel: SharingChannel, ended: () => void): () => void {
  if (!isThread(channel)) {
    post(channel, asking)
    return () => undefined
  }
  const { port1, port2 } = new MessageChannel()
  port1.on('close', ended)
  post(channel, { ...asking, port: port2 }, port2)
  return () => {
    port1.off('close', ended)
    port1.close()
  }
}

function isPort(value: unknown): value is MessagePort {
  return typeof propertyOf(value, 'postMessage') === 'function'
}

function closePort(offer: unknown): void {
  const port = propertyOf(offer, 'port')
  if (isPort(port)) port.close()
}

/**
 * Connects to the side that made an offer; undefined if the offer was withdrawn or its side is gone. @throws TypeError;
 * SystemError
 */
export function connect(channel: SharingChannel, offer: unknown, api: string): Link | undefined {
  const { version, path, port } = offer as {
    readonly version?: unknown
    readonly path?: unknown
    readonly port?: unknown
  }
  try {
    if (version !== 1) throw wrongType(api, 'message.version', '1, the only one known here', version)
    // Only threads send ports. A socket gives no access to this process, whoever names it.
    if (isThread(channel) && isPort(port)) return new PortLink(port)
    if (typeof path !== 'string' || !path.startsWith(namesOfShares)) {
      throw wrongType(api, 'message.path', 'the name of a socket of share()', path)
    }
  } catch (error) {
    closePort(offer)
    throw error
  }
  try {
    return new SocketLink(DescriptorSocket.connect(path))
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

import { randomBytes } from 'node:crypto'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { heldOnceAsked } from '@shoal/cuda-base'
import { DescriptorServer, DescriptorSocket } from '@shoal/ffi'
import {
  DisposedError,
  type DType,
  FeatureNotSupportedError,
  type MemoryLike,
  propertyOf,
  requireWaitOptions,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import { describeInProcess, exportMemory, type SharingWay } from './description.js'
import { inTurn, limited } from './limits.js'
import { type Link, PortLink, peerEnded, SocketLink } from './links.js'
import { readShareOptions, readyToSend, type ShareOptions } from './overSocket.js'
import { SharedMemory } from './sharedMemory.js'

interface Listening {
  on(event: 'message', listener: (message: unknown) => void): unknown
  off(event: 'message', listener: (message: unknown) => void): unknown
}

/** A channel between processes as Node has it: what `fork` gave, or `process` in its child. */
export interface ProcessChannel extends Listening {
  /** As Node has it; absent where there is no channel. */
  send?(message: object, callback?: (error: Error | null) => void): boolean
}

/** A channel between threads as Node has it: a `Worker`, `parentPort` or a `MessagePort`. */
export interface ThreadChannel extends Listening {
  /** As Node has it. */
  postMessage(message: object, transfer?: readonly MessagePort[]): void
}

/** What {@link share} and {@link receive} work over. */
export type SharingChannel = ProcessChannel | ThreadChannel

/** Memory that another thread or process has opened. */
export interface Sharing {
  /** How it went. */
  readonly way: SharingWay
  /**
   * Resolves when the other side has disposed of it, or has ended. Memory that was not mapped must stay until then. Whoever asks keeps the
   * process alive until then.
   */
  readonly released: Promise<void>
}

/**
 * What announces a share on a channel; other messages are the program's. Nobody may be listening yet, so each side tells the other when it
 * begins: an offer is made once more for whoever asks, and one that was taken already is left alone, by its id.
 */
interface Offer {
  readonly shoal: 'share'
  readonly version: 1
  readonly id: string
  /** A socket without a file, which the sender listens on. */
  readonly path?: string
  readonly port?: MessagePort
}

const asking = { shoal: 'receive' } as const

/** One after the other on each channel: nobody could tell which offer is whose. */
const sending = new WeakMap<object, Promise<unknown>>()
const receiving = new WeakMap<object, Promise<unknown>>()

/** Offers of a channel that were seen, the newest of them. */
const seen = new WeakMap<object, Set<string>>()
const mostSeen = 64

/** Whether an offer is new. */
function isNew(channel: object, id: string): boolean {
  const known = seen.get(channel) ?? new Set()
  if (known.has(id)) return false
  seen.set(channel, known.add(id))
  for (const oldest of known) if (known.size > mostSeen) known.delete(oldest)
  return true
}

function post(channel: SharingChannel, message: object, port?: MessagePort): void {
  if (isThread(channel)) channel.postMessage(message, port === undefined ? [] : [port])
  // That the other side is gone its end says.
  else channel.send?.(message, () => undefined)
}

/** Listens on a channel until the function that it returns is called. */
function listen(channel: SharingChannel, kind: string, heard: (message: unknown) => void): () => void {
  const listener = (message: unknown): void => {
    if (propertyOf(message, 'shoal') === kind) heard(message)
  }
  channel.on('message', listener)
  return () => void channel.off('message', listener)
}

function requireChannel(channel: unknown, api: string): SharingChannel {
  const isChannel = [propertyOf(channel, 'postMessage'), propertyOf(channel, 'send')].some(
    (f) => typeof f === 'function',
  )
  if (isChannel && typeof propertyOf(channel, 'on') === 'function') return channel as SharingChannel
  const expected = 'a ChildProcess with an IPC channel, process in such a child, a Worker or a MessagePort'
  throw wrongType(api, 'channel', expected, channel)
}

function isThread(channel: SharingChannel): channel is ThreadChannel {
  return typeof propertyOf(channel, 'postMessage') === 'function'
}

/** Tells when the other end of a channel goes, as far as the channel does. */
function onEnd(channel: SharingChannel, listener: () => void): () => void {
  const emitter = channel as unknown as NodeJS.EventEmitter
  const events = isThread(channel) ? ['exit', 'close'] : ['exit', 'disconnect']
  // process.on('exit') is the end of this process, not of the other one.
  const names = channel === (process as unknown) ? ['disconnect'] : events
  for (const name of names) emitter.on(name, listener)
  return () => {
    for (const name of names) emitter.off(name, listener)
  }
}

/**
 * Gives memory of a device to another thread or process, which takes it with {@link receive}, by the way that fits. Resolves when it was taken.
 * @throws TypeError, RangeError; DisposedError for memory that is gone before; FeatureNotSupportedError where it cannot leave its process, or
 * be opened there; SystemError with `code` `'ECONNRESET'` when the other side ends first; AbortedError, TimeoutError
 *
 * @example
 * const child = fork('child.js')
 * const { released } = await share(child, buffer)
 * await released // the child has disposed of it
 */
export async function share(channel: SharingChannel, memory: MemoryLike, options?: ShareOptions): Promise<Sharing> {
  const api = 'share'
  requireChannel(channel, api)
  const { event, wait } = readShareOptions(options, api)
  const describe = isThread(channel) ? describeInProcess : exportMemory
  // What cannot be shared is refused before anybody is told; the descriptor for it is made when it is taken.
  for (const source of describe(memory, api).sources) source.dispose()
  return inTurn(sending, channel, () =>
    limited(wait, async (signal, end) => {
      const stop = onEnd(channel, () => end(peerEnded(api)))
      try {
        const link = await (isThread(channel) ? offerPorts(channel, signal) : offerSocket(channel, signal, api))
        // From here on the link tells of the end, behind what was said before it: a side that has taken the memory may end at once.
        stop()
        try {
          const exported = await readyToSend(memory, event, { signal }, api, describe)
          await link.sendMemory(exported, signal)
          await taken(link, signal, api)
          const released = heldOnceAsked(link.whenClosed().finally(() => link.close()))
          return {
            way: exported.description.way,
            get released() {
              return released()
            },
          }
        } catch (error) {
          if (error instanceof DisposedError) await link.send({ type: 'disposed' }, signal)
          link.close()
          throw error
        }
      } catch (error) {
        throw propertyOf(error, 'code') === 'ECONNRESET' ? peerEnded(api) : error
      } finally {
        stop()
      }
    }),
  )
}

async function taken(link: Link, signal: AbortSignal, api: string): Promise<void> {
  const { data } = await link.receive(signal)
  if (propertyOf(data, 'type') === 'taken') return
  const reason = `the other side could not open it: ${String(propertyOf(data, 'message'))}`
  throw new FeatureNotSupportedError({ library: 'NVIDIA CUDA driver', api, reason })
}

/** A port for each time that it is offered; the one that is answered is used. */
async function offerPorts(channel: ThreadChannel, signal: AbortSignal): Promise<Link> {
  const id = randomBytes(16).toString('hex')
  const links: Link[] = []
  let stop = (): void => undefined
  const answered = new Promise<Link>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    const offer = (): void => {
      const { port1, port2 } = new MessageChannel()
      const link = new PortLink(port1)
      links.push(link)
      link.receive(signal).then(
        () => resolve(link),
        () => undefined, // one that the other side had no use for
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

async function offerSocket(channel: ProcessChannel, signal: AbortSignal, api: string): Promise<Link> {
  if (typeof channel.send !== 'function' || propertyOf(channel, 'connected') === false) throw peerEnded(api)
  const id = randomBytes(16).toString('hex')
  // No file, so that nothing stays when this process is killed; the kernel says whose the other end is.
  const server = DescriptorServer.listen(`\0shoal-share-${id}`)
  const offer = (): void => post(channel, { shoal: 'share', version: 1, id, path: server.path } satisfies Offer)
  const stop = listen(channel, asking.shoal, offer)
  try {
    offer()
    const link = new SocketLink(await server.accept({ signal }))
    await link.receive(signal)
    return link
  } finally {
    stop()
    server.dispose()
  }
}

/**
 * Resolves with the memory that {@link share} gave at the other end, opened. It is the caller's to dispose of, which tells the sender. Other
 * messages of the channel are left to the program.
 * @throws TypeError, RangeError for a wrong message; FeatureNotSupportedError for a device that this process does not see; DisposedError when
 * the sender has disposed of it; SystemError with `code` `'ECONNRESET'` when the sender ends; AbortedError, TimeoutError; StatusError
 *
 * @example
 * using memory = await receive<'f32'>(process, { timeout: 10_000 })
 */
export async function receive<D extends DType = DType>(
  channel: SharingChannel,
  options?: WaitOptions,
): Promise<SharedMemory<D>> {
  const api = 'receive'
  requireChannel(channel, api)
  const wait = requireWaitOptions(options, api)
  return inTurn(receiving, channel, () =>
    limited(wait, async (signal, end) => {
      const stop = onEnd(channel, () => end(peerEnded(api)))
      try {
        const link = await nextOffer(channel, signal, api)
        stop()
        return await take<D>(link, signal, api)
      } catch (error) {
        throw propertyOf(error, 'code') === 'ECONNRESET' ? peerEnded(api) : error
      } finally {
        stop()
      }
    }),
  )
}

function nextOffer(channel: SharingChannel, signal: AbortSignal, api: string): Promise<Link> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      stop()
      reject(signal.reason)
    }
    const stop = listen(channel, 'share', (offer) => {
      const { id, port } = offer as { readonly id?: unknown; readonly port?: unknown }
      if (typeof id === 'string' && !isNew(channel, id)) {
        if (isPort(port)) port.close()
        return
      }
      stop()
      signal.removeEventListener('abort', abort)
      try {
        resolve(connect(offer, api))
      } catch (error) {
        reject(error)
      }
    })
    signal.addEventListener('abort', abort, { once: true })
    post(channel, asking)
  })
}

function isPort(value: unknown): value is MessagePort {
  return typeof propertyOf(value, 'postMessage') === 'function'
}

function connect(offer: unknown, api: string): Link {
  const { version, path, port } = offer as {
    readonly version?: unknown
    readonly path?: unknown
    readonly port?: unknown
  }
  if (version !== 1) throw wrongType(api, 'message.version', '1, the only one known here', version)
  if (isPort(port)) return new PortLink(port)
  if (typeof path !== 'string' || !path.startsWith('\0shoal-share-')) {
    throw wrongType(api, 'message.path', 'the name of a socket of share()', path)
  }
  try {
    return new SocketLink(DescriptorSocket.connect(path))
  } catch (error) {
    // The sender gave up, or is gone.
    throw propertyOf(error, 'code') === 'ECONNREFUSED' ? peerEnded(api) : error
  }
}

async function take<D extends DType>(link: Link, signal: AbortSignal, api: string): Promise<SharedMemory<D>> {
  try {
    await link.send({ type: 'ready' }, signal)
    const first = await link.receive(signal)
    if (propertyOf(first.data, 'type') === 'disposed') throw new DisposedError({ object: 'the memory', operation: api })
    let memory: SharedMemory<D>
    try {
      memory = await SharedMemory._open<D>(first, () => link.receive(signal), api, { signal })
    } catch (error) {
      await link.send({ type: 'refused', message: error instanceof Error ? error.message : String(error) }, signal)
      throw error
    }
    try {
      await link.send({ type: 'taken' }, signal)
    } catch (error) {
      memory.dispose()
      throw error
    }
    memory._onClose(() => link.close())
    if (link instanceof PortLink) void link.whenClosed()
    return memory
  } catch (error) {
    link.close()
    throw error
  }
}

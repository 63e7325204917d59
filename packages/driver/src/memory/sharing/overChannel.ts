import { closeDescriptor } from '@shoal/ffi'
import {
  DisposedError,
  type DType,
  FeatureNotSupportedError,
  type MemoryLike,
  propertyOf,
  requireWaitOptions,
  type WaitOptions,
} from '@shoal/types'
import { heldOnceAsked } from '../../core/waiting/heldOnceAsked.js'
import { isThread, onEnd, requireChannel, requireOpen, type SharingChannel } from './channel.js'
import { describeInProcess, exportMemory, type SharingWay } from './description.js'
import { inTurn, limited } from './limits.js'
import { isGone, type Link, PortLink, peerEnded } from './links.js'
import { connect, Offers, offerPorts, offerSocket } from './offers.js'
import { readShareOptions, readyToSend, type ShareOptions } from './overSocket.js'
import { SharedMemory } from './sharedMemory.js'

export type { ProcessChannel, SharingChannel, ThreadChannel } from './channel.js'

/** Memory that another thread or process has opened. */
export interface Sharing {
  /** How it went. */
  readonly way: SharingWay
  /**
   * Resolves when the other side has disposed of it, or has ended. Memory that was not mapped must stay until then.
   * Whoever asks keeps the process alive until then.
   */
  readonly released: Promise<void>
}

/** One after the other on each channel: nobody could tell which offer is whose. */
const sending = new WeakMap<object, Promise<void>>()
const receiving = new WeakMap<object, Promise<void>>()

/**
 * Gives memory of a device to another thread or process, which takes it with {@link receive}, by the way that fits.
 * Resolves when it was taken. Several on one channel go one after the other; limits hold while a call waits for its
 * turn, too.
 * @throws TypeError, RangeError; DisposedError for memory that is gone before; FeatureNotSupportedError where it cannot
 * leave its process, or be opened there; SystemError with `code` `'ECONNRESET'` when the other side ends first or has
 * ended; AbortedError, TimeoutError
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
  return limited(wait, api, async (signal, end) => {
    requireOpen(channel, api)
    const stop = onEnd(channel, () => end(peerEnded(api)))
    try {
      return await inTurn(sending, channel, signal, async () => {
        const link = await (isThread(channel) ? offerPorts(channel, signal, api) : offerSocket(channel, signal, api))
        // From here on the link tells of the end, behind what was said before it: a side that has taken the memory may
        // end at once.
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
      })
    } catch (error) {
      throw isGone(error) ? peerEnded(api) : error
    } finally {
      stop()
    }
  })
}

/** Characters of what the other side says went wrong. */
const mostOfReason = 500

async function taken(link: Link, signal: AbortSignal, api: string): Promise<void> {
  const data = await link.hear(signal)
  if (propertyOf(data, 'type') === 'taken') return
  const message = propertyOf(data, 'message')
  const why = typeof message === 'string' ? (message.split('\n', 1)[0] as string).slice(0, mostOfReason) : 'no reason'
  const reason = `the other side could not open it: ${why}`
  throw new FeatureNotSupportedError({ library: 'NVIDIA CUDA driver', api, reason })
}

/**
 * Resolves with the memory that {@link share} gave at the other end, opened. It is the caller's to dispose of, which
 * tells the sender. A share that was given up before is passed over. Other messages of the channel are left to the
 * program.
 * @throws TypeError, RangeError for a wrong message; FeatureNotSupportedError for a device that this process does not
 * see; DisposedError when the sender has disposed of it; SystemError with `code` `'ECONNRESET'` when the sender ends or
 * has ended; AbortedError, TimeoutError; StatusError
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
  return limited(wait, api, async (signal, end) => {
    requireOpen(channel, api)
    let isEnded = false
    let link: Link | undefined
    const ended = (): void => {
      isEnded = true
      // The link tells of the end otherwise, behind what was said before it.
      if (link === undefined) end(peerEnded(api))
    }
    const stop = onEnd(channel, ended)
    try {
      return await inTurn(receiving, channel, signal, async () => {
        const offers = new Offers(channel, ended)
        try {
          for (;;) {
            link = connect(channel, await offers.next(signal), api)
            const memory = link === undefined ? undefined : await take<D>(link, signal, api)
            if (memory !== undefined) return memory
            // It was given up before it was taken: another one may come.
            link = undefined
            if (isEnded) throw peerEnded(api)
          }
        } finally {
          offers.close()
        }
      })
    } catch (error) {
      throw isGone(error) ? peerEnded(api) : error
    } finally {
      stop()
    }
  })
}

/** Opens what a sender offers; undefined when it has given that up meanwhile, or has ended. */
async function take<D extends DType>(
  link: Link,
  signal: AbortSignal,
  api: string,
): Promise<SharedMemory<D> | undefined> {
  try {
    await link.send({ type: 'ready' }, signal)
    const first = await link.receive(signal)
    if (propertyOf(first.data, 'type') === 'disposed') {
      for (const descriptor of first.descriptors) closeDescriptor(descriptor)
      throw new DisposedError({ object: 'the memory', operation: api })
    }
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
    if (isGone(error)) return undefined
    throw error
  }
}

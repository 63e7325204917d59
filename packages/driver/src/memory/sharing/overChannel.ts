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
  /** How the memory was shared. */
  readonly way: SharingWay
  /**
   * Resolves when the other side has disposed of the memory or has ended. Until then, keep the memory, unless it is
   * mapped memory. Reading this property keeps the process alive until then.
   */
  readonly released: Promise<void>
}

/** The last share of each channel. Shares run one after the other, because offers could not be told apart otherwise. */
const sending = new WeakMap<object, Promise<void>>()
const receiving = new WeakMap<object, Promise<void>>()

/**
 * Shares device memory with another thread or process, which opens it with {@link receive}. Resolves when the other
 * side has opened the memory. Several calls on one channel run one after the other; time spent waiting counts for the
 * limits.
 * @throws TypeError, RangeError; DisposedError when the memory is disposed of first; FeatureNotSupportedError when the
 * memory cannot leave its process or be opened there; SystemError with `code` `'ECONNRESET'` when the other side ends;
 * AbortedError, TimeoutError
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
  // Refuse memory that cannot be shared before announcing it. Its descriptor is created when the other side takes it.
  for (const source of describe(memory, api).sources) source.dispose()
  return limited(wait, api, async (signal, end) => {
    requireOpen(channel, api)
    const stop = onEnd(channel, () => end(peerEnded(api)))
    try {
      return await inTurn(sending, channel, signal, async () => {
        const link = await (isThread(channel) ? offerPorts(channel, signal, api) : offerSocket(channel, signal, api))
        // From now on the link reports the other side's end, after its last message. A side that has opened the memory
        // may end at once.
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

/** Maximum characters of the other side's error. */
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
 * Opens the memory that {@link share} offers at the other end. The caller disposes of it, which notifies the sender.
 * Skips a share that its sender has withdrawn. All other messages of the channel belong to the program.
 * @throws TypeError, RangeError for a wrong message; FeatureNotSupportedError for a device that is not visible to this
 * process; DisposedError when the sender has disposed of the memory; SystemError with `code` `'ECONNRESET'` when the
 * sender ends; AbortedError, TimeoutError; StatusError
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
      // With a link, the link reports the end, after the last message.
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
            // The sender withdrew this share. Wait for another one.
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

/** Opens offered memory; undefined if the sender has withdrawn the offer or has ended. */
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

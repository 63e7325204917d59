import { NativeMemory } from '@shoal/ffi'
import { ncclPutSignal, ncclSignal, ncclWaitSignal, ncclWaitSignalDesc_t } from '@shoal/nccl-sys'
import {
  type MemoryLike,
  type OptionKeys,
  requireInstance,
  requireInteger,
  requireOptions,
  type StreamArgument,
  wrongType,
} from '@shoal/types'
import { memoryAt, streamAt, wireTypeOf } from '../arguments/operands.js'
import { keepUntilGroupEnds } from '../group/group.js'
import { beginOperation, submit } from '../group/submit.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { copyable, ownCount } from '../operations/counts.js'
import { type CollectiveOptions, collectiveKeys } from '../operations/options.js'
import type { PeerOptions } from '../operations/pointToPoint.js'
import { isInSymmetricWindow, Window } from './window.js'

/** Selects the counter of a rank that a signal updates. */
export interface SignalChannel {
  /** Index of the signal. NCCL 2.30 has only 0. Default: 0. */
  readonly signal?: number | undefined
  /**
   * Context of one-sided operations, below the config's `numRmaCtx`. Default: 0.
   *
   * Operations of one context stay in order.
   */
  readonly context?: number | undefined
}

/** Options of a signal to a peer. */
export interface SignalOptions extends SignalChannel, PeerOptions {
  /** Stream to queue on. */
  readonly stream?: StreamArgument | undefined
}

/** Options of a put with a signal. */
export interface PutSignalOptions extends CollectiveOptions, SignalOptions {
  /** Window of the peer's memory: the result of the collective `registerWindow` on this rank. */
  readonly window: Window
  /** Offset in the peer's part of the window, in bytes. Default: 0. */
  readonly offset?: number | undefined
}

/** Options of a wait for signals. */
export interface WaitSignalOptions {
  /**
   * Stream that waits: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamArgument | undefined
}

/** Signals of a peer to wait for. */
export interface AwaitedSignal extends SignalChannel, PeerOptions {
  /** Number of signals of that peer. Default: 1. */
  readonly count?: number | undefined
}

const largestInt = 0x7fff_ffff
const awaitedKeys: OptionKeys<AwaitedSignal> = { peer: true, signal: true, context: true, count: true }
const waitSignalKeys: OptionKeys<WaitSignalOptions> = { stream: true }
const signalKeys: OptionKeys<SignalOptions> = { peer: true, signal: true, context: true, stream: true }
const putSignalKeys: OptionKeys<PutSignalOptions> = { ...collectiveKeys, ...signalKeys, window: true, offset: true }

export function putSignal(live: LiveCommunicator, source: MemoryLike, options: PutSignalOptions): void {
  const api = 'Communicator.putSignal'
  beginOperation()
  requireOptions(options, api, putSignalKeys)
  const peer = requireInteger(options.peer, api, 'peer', 0, live.worldSize - 1)
  const window = requireInstance(options.window, api, 'window', Window as never) as Window
  const handle = window._handleFor(live, api)
  const range = memoryAt(source, live, api, 'source', false)
  const wire = wireTypeOf(range, undefined, options.dtype, api)
  const count = ownCount(range, 'source', wire, options.count, api)
  const byteLength = count * wire.bytes
  const offset = requireInteger(options.offset ?? 0, api, 'offset', 0)
  if (offset + byteLength > window.byteLength) {
    throw new RangeError(
      `${api}: offset must leave room for ${byteLength} bytes in the window of ${window.byteLength}, not ${offset}`,
    )
  }
  if (!isInSymmetricWindow(live, range, byteLength)) {
    throw new TypeError(`${api}: source must lie in a symmetric window of this communicator (see registerWindow)`)
  }
  const [units, type] = copyable(wire, count)
  const { signal, context } = channel(options, api)
  const stream = streamAt(options.stream, live, api, range)
  const call = (): number =>
    ncclPutSignal(range.address, units, type, peer, handle, offset, signal, context, 0, live.handle, stream)
  submit(live, 'ncclPutSignal', call, source, window.memory, options.stream)
}

export function signal(live: LiveCommunicator, options: SignalOptions): void {
  const api = 'Communicator.signal'
  beginOperation()
  requireOptions(options, api, signalKeys)
  const peer = requireInteger(options.peer, api, 'peer', 0, live.worldSize - 1)
  const { signal: index, context } = channel(options, api)
  const stream = streamAt(options.stream, live, api)
  const call = (): number => ncclSignal(peer, index, context, 0, live.handle, stream)
  submit(live, 'ncclSignal', call, undefined, undefined, options.stream)
}

export function waitSignal(
  live: LiveCommunicator,
  signals: Iterable<AwaitedSignal> | AwaitedSignal,
  options: WaitSignalOptions,
): void {
  const api = 'Communicator.waitSignal'
  beginOperation()
  requireOptions(options, api, waitSignalKeys)
  if (typeof signals !== 'object' || signals === null)
    throw wrongType(api, 'signals', 'a signal or a list of them', signals)
  const list = Symbol.iterator in signals ? [...signals] : [signals]
  if (list.length === 0) throw new RangeError(`${api}: signals must be a list of at least one, not an empty one`)
  const descriptors = NativeMemory.allocate(ncclWaitSignalDesc_t.size * list.length)
  for (const [index, awaited] of list.entries()) {
    const name = `signals[${index}]`
    requireOptions(awaited, api, awaitedKeys, name)
    const peer = requireInteger(awaited.peer, api, `${name}.peer`, 0, live.worldSize - 1)
    const { signal: sigIdx, context: ctx } = channel(awaited, api)
    const opCnt = requireInteger(awaited.count ?? 1, api, `${name}.count`, 1, largestInt)
    ncclWaitSignalDesc_t.write(descriptors.bytes.subarray(index * ncclWaitSignalDesc_t.size), {
      opCnt,
      peer,
      sigIdx,
      ctx,
    })
  }
  const stream = streamAt(options.stream, live, api)
  const call = (): number => ncclWaitSignal(list.length, descriptors, live.handle, stream)
  submit(live, 'ncclWaitSignal', call, undefined, undefined, options.stream)
  keepUntilGroupEnds(descriptors)
}

function channel({ signal = 0, context = 0 }: SignalChannel, api: string): { signal: number; context: number } {
  return {
    signal: requireInteger(signal, api, 'signal', 0, largestInt),
    context: requireInteger(context, api, 'context', 0, largestInt),
  }
}

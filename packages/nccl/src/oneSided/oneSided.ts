import { NativeMemory } from '@shoal/ffi'
import { ncclPutSignal, ncclSignal, ncclWaitSignal, ncclWaitSignalDesc_t } from '@shoal/nccl-sys'
import type { MemoryLike, StreamLike } from '@shoal/types'
import { keepUntilGroupEnds } from '../group/group.js'
import { submit } from '../group/submit.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { checkedRank, checkOptions, copyable, ownCount } from '../operations/counts.js'
import { memoryAt, streamAt, wireTypeOf } from '../operations/operands.js'
import type { CollectiveOptions } from '../operations/options.js'
import type { PeerOptions } from '../operations/pointToPoint.js'
import { isInSymmetricWindow, Window } from './window.js'

/** Which of a rank's counters a signal goes to. */
export interface SignalChannel {
  /** Index of the signal. NCCL 2.30 has one, 0. Default 0. */
  readonly signal?: number | undefined
  /** Context of one-sided operations: those of one context keep their order. Below the config's `numRmaCtx`. Default 0. */
  readonly context?: number | undefined
}

/** Whom to signal. */
export interface SignalOptions extends SignalChannel, PeerOptions {
  /** Stream the operation is queued on. */
  readonly stream: StreamLike | bigint | null
}

/** Where a put goes. */
export interface PutSignalOptions extends CollectiveOptions, SignalOptions {
  /** Window that the peer's memory is open by: what the collective `registerWindow` gave on this rank. */
  readonly window: Window
  /** Where in the peer's part of the window the data goes, in bytes. Default 0. */
  readonly offset?: number | undefined
}

/** Signals to wait for. */
export interface AwaitedSignal extends SignalChannel, PeerOptions {
  /** How many signals of that peer. Default 1. */
  readonly count?: number | undefined
}

export function putSignal(live: LiveCommunicator, source: MemoryLike, options: PutSignalOptions): void {
  const api = 'Communicator.putSignal'
  checkOptions(options, api)
  const peer = checkedRank(live, options.peer, 'peer', api)
  if (!Window._is(options.window)) throw new TypeError(`${api}: window must be a Window (see registerWindow)`)
  const { window } = options
  const handle = window._handleFor(live, api)
  const range = memoryAt(source, live, api, 'source', false)
  const wire = wireTypeOf(range, undefined, options.dtype, api)
  const count = ownCount(range, 'source', wire, options.count, api)
  const byteLength = count * wire.bytes
  const offset = whole(options.offset ?? 0, 'offset', api)
  if (offset + byteLength > window.byteLength) {
    throw new RangeError(
      `${api}: ${byteLength} bytes from byte ${offset} reach beyond the window of ${window.byteLength} bytes`,
    )
  }
  if (!isInSymmetricWindow(live, range, byteLength)) {
    throw new TypeError(`${api}: source must lie in a symmetric window of this communicator (see registerWindow)`)
  }
  const [units, type] = copyable(wire, count)
  const { signal, context } = channel(options, api)
  const stream = streamAt(options.stream, live, api)
  submit(live, 'ncclPutSignal', () =>
    ncclPutSignal(range.address, units, type, peer, handle, offset, signal, context, 0, live.handle, stream),
  )
}

export function signal(live: LiveCommunicator, options: SignalOptions): void {
  const api = 'Communicator.signal'
  checkOptions(options, api)
  const peer = checkedRank(live, options.peer, 'peer', api)
  const { signal: index, context } = channel(options, api)
  const stream = streamAt(options.stream, live, api)
  submit(live, 'ncclSignal', () => ncclSignal(peer, index, context, 0, live.handle, stream))
}

export function waitSignal(
  live: LiveCommunicator,
  signals: Iterable<AwaitedSignal> | AwaitedSignal,
  options: { readonly stream: StreamLike | bigint | null },
): void {
  const api = 'Communicator.waitSignal'
  checkOptions(options, api)
  if (typeof signals !== 'object' || signals === null) throw new TypeError(`${api}: signals must be named`)
  const list = Symbol.iterator in signals ? [...signals] : [signals]
  if (list.length === 0) throw new RangeError(`${api}: the list of signals is empty`)
  const descriptors = NativeMemory.allocate(ncclWaitSignalDesc_t.size * list.length)
  for (const [index, awaited] of list.entries()) {
    if (typeof awaited !== 'object' || awaited === null) throw new TypeError(`${api}: signals[${index}] is no object`)
    const peer = checkedRank(live, awaited.peer, `signals[${index}].peer`, api)
    const { signal: sigIdx, context: ctx } = channel(awaited, api)
    const opCnt = whole(awaited.count ?? 1, `signals[${index}].count`, api)
    if (opCnt < 1) throw new RangeError(`${api}: signals[${index}].count must be at least 1`)
    ncclWaitSignalDesc_t.write(descriptors.bytes.subarray(index * ncclWaitSignalDesc_t.size), {
      opCnt,
      peer,
      sigIdx,
      ctx,
    })
  }
  const stream = streamAt(options.stream, live, api)
  submit(live, 'ncclWaitSignal', () => ncclWaitSignal(list.length, descriptors, live.handle, stream))
  keepUntilGroupEnds(descriptors)
}

function channel({ signal = 0, context = 0 }: SignalChannel, api: string): { signal: number; context: number } {
  return { signal: whole(signal, 'signal', api), context: whole(context, 'context', api) }
}

function whole(value: unknown, parameter: string, api: string): number {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${api}: ${parameter} must be a number`)
  const most = parameter === 'offset' ? Number.MAX_SAFE_INTEGER : 0x7fff_ffff
  if (Number.isInteger(value) && value >= 0 && value <= most) return value
  throw new RangeError(`${api}: ${parameter} must be a whole number from 0, got ${value}`)
}

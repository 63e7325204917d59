import { CUmemLocation, type CUstream } from '@shoal/cuda-sys/driver'
import {
  type MemoryLike,
  type MemoryRange,
  type OptionKeys,
  optionalBoolean,
  outOfRange,
  requireList,
  requireOptions,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { orderBehind } from '../../core/stream/orderBehind.js'
import { streamFor } from '../../core/stream/stream.js'
import type { QueueOptions } from '../buffers/deviceTransfers.js'
import { type ManagedPlace, managedLocation } from '../buffers/managedBuffer.js'

/** One prefetch of a batch. */
export interface BatchedPrefetch {
  /** Managed memory, or a part of it. */
  readonly memory: MemoryLike
  /** The destination. */
  readonly place: ManagedPlace
}

/** Options of a batch of prefetches. */
export interface PrefetchOptions extends QueueOptions {
  /** Discards the contents instead of moving them. Default: false. */
  readonly discard?: boolean | undefined
}

const prefetchKeys: OptionKeys<BatchedPrefetch> = { memory: true, place: true }
const optionKeys: OptionKeys<PrefetchOptions> = { stream: true, discard: true }
const queueKeys: OptionKeys<QueueOptions> = { stream: true }

/**
 * Queues prefetches of many pieces of managed memory in one call, each to its own place (`cuMemPrefetchBatchAsync`,
 * `cudaMemPrefetchBatchAsync`; with `discard`, `cuMemDiscardAndPrefetchBatchAsync`).
 * @param options `stream` is required: CUDA has no such call for the legacy default stream
 * @throws TypeError, RangeError; DisposedError, StatusError; VersionTooOldError before CUDA 13.0
 *
 * @example
 * prefetchBatch(device, layers.map((layer) => ({ memory: layer, place: device })), { stream })
 */
export function prefetchBatch(
  owner: DeviceOrContext,
  prefetches: readonly BatchedPrefetch[],
  options: PrefetchOptions,
): void {
  const api = 'prefetchBatch'
  const context = contextOf(owner, api)
  const list = requireList(prefetches, api, 'prefetches', 'an array of prefetches')
  for (const [index, each] of list.entries()) requireOptions(each, api, prefetchKeys, `prefetches[${index}]`)
  const { stream, discard } = requireOptions(options, api, optionKeys)
  const call = optionalBoolean(discard, api, 'discard', false)
    ? 'memDiscardAndPrefetchBatchAsync'
    : 'memPrefetchBatchAsync'
  const locations = new Uint8Array(list.length * CUmemLocation.size)
  for (const [index, { place }] of list.entries()) {
    locations.set(managedLocation(place, api, `prefetches[${index}].place`), index * CUmemLocation.size)
  }
  const queue = requiredStream(context, stream, api)
  const { addresses, sizes } = rangesOf(context, queue, list, api, 'prefetches', ({ memory }, name) =>
    toMemoryRange(memory, api, `${name}.memory`),
  )
  // Each piece has one location, which applies from the piece's own index.
  const firsts = BigUint64Array.from(list, (_, index) => BigInt(index))
  context._call(call, addresses, sizes, list.length, locations, firsts, list.length, 0, queue)
  keepCaptured(
    context._handle,
    queue,
    list.map(({ memory }) => memory),
  )
}

/**
 * Discards the contents of many pieces of managed memory (`cuMemDiscardBatchAsync`, `cudaMemDiscardBatchAsync`). Reads
 * before the next write return undefined values. @throws as {@link prefetchBatch}
 */
export function discardBatch(owner: DeviceOrContext, memories: readonly MemoryLike[], options: QueueOptions): void {
  const api = 'discardBatch'
  const context = contextOf(owner, api)
  const list = requireList(memories, api, 'memories', 'an array of managed memory')
  const { stream } = requireOptions(options, api, queueKeys)
  const queue = requiredStream(context, stream, api)
  const { addresses, sizes } = rangesOf(context, queue, list, api, 'memories', (memory, name) =>
    toMemoryRange(memory, api, name),
  )
  context._call('memDiscardBatchAsync', addresses, sizes, list.length, 0, queue)
  keepCaptured(context._handle, queue, list)
}

function rangesOf<T>(
  context: Context,
  queue: CUstream,
  list: readonly T[],
  api: string,
  name: string,
  rangeOf: (each: T, name: string) => MemoryRange,
): { readonly addresses: BigUint64Array; readonly sizes: BigUint64Array } {
  if (list.length === 0) throw outOfRange(api, name, 'at least one piece of memory', 0)
  const ranges = list.map((each, index) => {
    const range = rangeOf(each, `${name}[${index}]`)
    if (range.byteLength === 0) throw outOfRange(api, `${name}[${index}]`, 'memory of at least one byte', 0)
    return range
  })
  for (const range of ranges) orderBehind(queue, context.handle, range)
  return {
    addresses: BigUint64Array.from(ranges, ({ address }) => address),
    sizes: BigUint64Array.from(ranges, ({ byteLength }) => BigInt(byteLength)),
  }
}

function requiredStream(context: Context, stream: QueueOptions['stream'], api: string): CUstream {
  if (stream === undefined) throw wrongType(api, 'stream', 'a stream', undefined)
  return streamFor(context, stream, api)
}

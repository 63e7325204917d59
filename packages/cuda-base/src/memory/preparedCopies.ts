import { type CUstream, cuMemcpyBatchAsync } from '@shoal/cuda-sys/driver/common'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  type MemoryLike,
  type MemoryRange,
  type OptionKeys,
  optionsChecker,
  outOfRange,
  requireList,
  requireOptions,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../context/context.js'
import { orderBehind } from '../stream/orderBehind.js'
import { streamFor } from '../stream/stream.js'
import { DeviceBuffer } from './deviceBuffer.js'
import type { QueueOptions } from './deviceTransfers.js'

/** One copy of many. */
export interface BatchedCopy {
  /** Where to. */
  readonly target: MemoryLike
  /** As long as the target. */
  readonly source: MemoryLike
}

const copyKeys: OptionKeys<BatchedCopy> = { target: true, source: true }
const requireQueueOptions = optionsChecker<QueueOptions>({ stream: true })

// CUmemcpyAttributes: the order of the source's reads, and no hints.
const attributesBytes = 24
const inStreamOrder = 1

/**
 * Many copies that are queued by one call, checked and packed once; made by {@link prepareCopies}.
 */
export class PreparedCopies {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** How many. */
  readonly count: number
  readonly #context: Context
  readonly #copies: readonly BatchedCopy[]
  readonly #targets: BigUint64Array
  readonly #sources: BigUint64Array
  readonly #sizes: BigUint64Array
  readonly #attributes = new Uint8Array(attributesBytes)
  readonly #first = new BigUint64Array(1)

  /** @internal */
  constructor(
    context: Context,
    copies: readonly BatchedCopy[],
    ranges: readonly (readonly [MemoryRange, MemoryRange])[],
  ) {
    this.count = copies.length
    this.#context = context
    this.#copies = copies
    this.#targets = BigUint64Array.from(ranges, ([to]) => to.address)
    this.#sources = BigUint64Array.from(ranges, ([, from]) => from.address)
    this.#sizes = BigUint64Array.from(ranges, ([to]) => BigInt(to.byteLength))
    this.#attributes[0] = inStreamOrder
  }

  /**
   * Queues all copies, in no order among each other, and returns at once (`cuMemcpyBatchAsync`).
   * @param options `stream` must be given: CUDA has no such call for the legacy default stream.
   * @throws DisposedError when memory of one is gone; TypeError, StatusError; VersionTooOldError before CUDA 13.0
   */
  launch(options: QueueOptions): void {
    const api = 'PreparedCopies.launch'
    requireQueueOptions(options, api)
    if (options.stream === undefined) throw wrongType(api, 'stream', 'a stream', undefined)
    const stream = streamFor(this.#context, options.stream, api)
    for (const { target, source } of this.#copies) {
      this.#requireReady(target, stream, api)
      this.#requireReady(source, stream, api)
    }
    this.#context._callDriver('cuMemcpyBatchAsync', () =>
      cuMemcpyBatchAsync(
        this.#targets,
        this.#sources,
        this.#sizes,
        this.count,
        this.#attributes,
        this.#first,
        1,
        stream,
      ),
    )
  }

  #requireReady(memory: MemoryLike, stream: CUstream, api: string): void {
    // The short way, which most memory goes.
    if (memory instanceof DeviceBuffer && memory._addressIn(this.#context) !== undefined) return
    orderBehind(stream, this.#context.handle, toMemoryRange(memory, api))
  }

  get [Symbol.toStringTag](): string {
    return 'PreparedCopies'
  }

  [inspectKey](): string {
    return inspectLine('PreparedCopies', { device: this.#context.device.ordinal, count: this.count })
  }
}

/**
 * Checks and packs many copies, to be queued together by `launch({ stream })`: between device, page-locked and managed memory,
 * of any package.
 * @throws TypeError, RangeError for copies whose ends are not equally long; DisposedError
 *
 * @example
 * const copies = prepareCopies(device, blocks.map((block, index) => ({ target: cache.slice(index * n, (index + 1) * n), source: block })))
 * copies.launch({ stream })
 */
export function prepareCopies(owner: DeviceOrContext, copies: readonly BatchedCopy[]): PreparedCopies {
  const api = 'prepareCopies'
  const context = contextOf(owner, api)
  const list = requireList(copies, api, 'copies', 'an array of copies')
  if (list.length === 0) throw outOfRange(api, 'copies', 'at least one copy', 0)
  const ranges = list.map((copy, index) => {
    const name = `copies[${index}]`
    requireOptions(copy, api, copyKeys, name)
    const to = toMemoryRange(copy.target, api, `${name}.target`)
    const from = toMemoryRange(copy.source, api, `${name}.source`)
    if (to.byteLength === 0) throw outOfRange(api, `${name}.target`, 'memory of at least one byte', 0)
    if (to.byteLength !== from.byteLength) {
      throw outOfRange(api, `${name}.source`, `as long as its target, ${to.byteLength} bytes`, from.byteLength)
    }
    return [to, from] as const
  })
  return new PreparedCopies(context, list, ranges)
}

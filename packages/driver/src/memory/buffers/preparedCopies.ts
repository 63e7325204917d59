import { type CUstream, cuMemcpyBatchAsync } from '@shoal/cuda-sys/driver'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  type MemoryLike,
  type OptionKeys,
  optionsChecker,
  outOfRange,
  PublicObject,
  requireList,
  requireMade,
  requireOptions,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import { isCapturing } from '../../core/context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { keepCaptured } from '../../core/context/keptByCaptures.js'
import { toSpan } from '../../core/ranges/span.js'
import { boundStreamOf, missingStreams } from '../../core/stream/boundStream.js'
import { orderBehind } from '../../core/stream/orderBehind.js'
import { streamFor } from '../../core/stream/stream.js'
import { DeviceBuffer } from './deviceBuffer.js'
import type { QueueOptions } from './deviceTransfers.js'
import { requireApart, requireNoRace } from './overlap.js'

/** One copy of a batch. */
export interface BatchedCopy {
  /** Memory to write. */
  readonly target: MemoryLike
  /** Memory to read. It has the same length as the target. */
  readonly source: MemoryLike
}

const copyKeys: OptionKeys<BatchedCopy> = { target: true, source: true }
const requireQueueOptions = optionsChecker<QueueOptions>({ stream: true })

/** @internal An object with a check that throws after dispose(). */
interface Usable {
  _use(): unknown
}

/** @internal The C function that queues the batch, and its name. */
export interface BatchCall {
  readonly name: string
  readonly queue: (stream: CUstream) => number
}

// CUmemcpyAttributes: the source is read in stream order, without hints.
const attributesBytes = 24
const inStreamOrder = 1

/**
 * A batch of copies, checked and packed once, that one call queues. Created by {@link prepareCopies} and
 * `prepareCopies3D`.
 */
export class PreparedCopies extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** Number of copies. */
  readonly count: number
  readonly #context: Context
  readonly #memories: readonly MemoryLike[]
  readonly #arrays: readonly Usable[]
  readonly #call: BatchCall

  /** @internal @param memories memory that the copies use; `arrays` are used too */
  constructor(
    context: Context,
    count: number,
    memories: readonly MemoryLike[],
    arrays: readonly Usable[],
    call: BatchCall,
  ) {
    requireMade(call, 'PreparedCopies', 'prepareCopies', 'object')
    super()
    this.count = count
    this.#context = context
    this.#memories = memories
    this.#arrays = arrays
    this.#call = call
  }

  /**
   * Queues all copies and returns immediately (`cuMemcpyBatchAsync`, `cuMemcpy3DBatchAsync`). The copies run in no
   * particular order.
   * @param options `stream` is required, here or through `Stream.use`: CUDA has no such call for the legacy default
   * stream
   * @throws DisposedError when a copy's memory is gone; TypeError, StatusError; VersionTooOldError before CUDA 13.0
   */
  launch(options: QueueOptions = {}): void {
    const api = 'PreparedCopies.launch'
    requireQueueOptions(options, api)
    const given = options.stream ?? (missingStreams.areDefault ? undefined : boundStreamOf(this.#context._handle, api))
    if (given === undefined) throw wrongType(api, 'stream', 'a stream', options.stream)
    const stream = streamFor(this.#context, given, api)
    for (const memory of this.#memories) this.#requireReady(memory, stream, api)
    for (const array of this.#arrays) array._use()
    const { name, queue } = this.#call
    this.#context._callDriver(name, () => queue(stream))
    if (isCapturing()) keepCaptured(this.#context._handle, stream, [...this.#memories, ...this.#arrays])
  }

  #requireReady(memory: MemoryLike, stream: CUstream, api: string): void {
    // The fast path for most memory.
    if (memory instanceof DeviceBuffer && memory._addressIn(this.#context) !== undefined) return
    orderBehind(stream, this.#context.handle, toSpan(memory, api))
  }

  get [Symbol.toStringTag](): string {
    return 'PreparedCopies'
  }

  override [inspectKey](): string {
    return inspectLine('PreparedCopies', { device: this.#context.device.ordinal, count: this.count })
  }
}

/**
 * Checks and packs a batch of copies, which `launch({ stream })` queues together. The memory can be device, page-locked
 * or managed memory of any package.
 * @throws TypeError; RangeError for copies whose sides differ in length or overlap, or that write memory of another
 * copy; DisposedError
 *
 * @example
 * const targetOf = (index: number) => cache.slice(index * n, (index + 1) * n)
 * const copies = prepareCopies(device, blocks.map((source, index) => ({ target: targetOf(index), source })))
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
    requireApart(to.address, from.address, to.byteLength, api, `${name}.source`)
    return [to, from] as const
  })
  requireNoRace(
    ranges.map(([to, from]) => ({
      to: Number(to.address),
      from: Number(from.address),
      byteLength: to.byteLength,
    })),
    api,
  )
  const targets = BigUint64Array.from(ranges, ([to]) => to.address)
  const sources = BigUint64Array.from(ranges, ([, from]) => from.address)
  const sizes = BigUint64Array.from(ranges, ([to]) => BigInt(to.byteLength))
  const attributes = new Uint8Array(attributesBytes)
  attributes[0] = inStreamOrder
  const first = new BigUint64Array(1)
  const memories = list.flatMap(({ target, source }) => [target, source])
  return new PreparedCopies(context, list.length, memories, [], {
    name: 'cuMemcpyBatchAsync',
    queue: (stream) => cuMemcpyBatchAsync(targets, sources, sizes, list.length, attributes, first, 1, stream),
  })
}

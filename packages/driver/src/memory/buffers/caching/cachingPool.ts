import {
  type ElementType,
  type OptionKeys,
  propertyOf,
  requireInstance,
  requireInteger,
  requireMade,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { isCaptured } from '../../../core/context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../../../core/context/context.js'
import { keepCaptured } from '../../../core/context/keptByCaptures.js'
import { forgetLeak, Resource, watchForLeak } from '../../../core/lifetime.js'
import { isStream, requireStream, type Stream, streamFor } from '../../../core/stream/stream.js'
import { Allocation } from '../allocation.js'
import { DeviceBuffer } from '../deviceBuffer.js'
import { bytesFor } from '../elementType.js'
import type { PoolUsage } from '../poolTypes.js'
import type { StreamAllocator } from '../streamAllocator.js'
import { BlockCache, type MemorySource } from './blockCache.js'

/** Options of a new caching pool. */
export interface CachingPoolOptions {
  /** Maximum memory from the device in bytes. Default: no limit. */
  readonly maximumBytes?: number | undefined
  /** Source of the pool's memory. Default: the device (`cuMemAlloc`, `cudaMalloc`). */
  readonly source?: MemorySource | undefined
}

export const cachingPoolKeys: OptionKeys<CachingPoolOptions> = { maximumBytes: true, source: true }

/** Counts of a caching pool since its creation. */
export interface CachingStatistics {
  /** Number of buffers allocated from the pool. */
  readonly allocations: number
  /** Number of allocations without a suitable free block, which took memory from the device. */
  readonly misses: number
  /** Number of times that the pool freed its free blocks because memory was short. */
  readonly retries: number
  /** Bytes that were returned and that other streams still use. */
  readonly waitingBytes: number
}

/**
 * Keeps freed device memory and reuses it without a driver call, like the pools of array libraries.
 *
 * Later work of the same stream can reuse memory immediately. Another stream gets memory only after the device has
 * completed all work that uses the memory.
 *
 * @example
 * using pool = device.createCachingPool()
 * const buffer = pool.allocate(stream, 'f32', 1024)
 * kernel.launch({ grid: 4, block: 256, stream }, buffer)
 * buffer.dispose() // back to the pool; the launch can still use the memory
 */
export class CachingPool extends Resource implements StreamAllocator {
  protected readonly kind = 'CachingPool'
  /** The context of the pool's device. */
  readonly context: Context
  readonly #cache: BlockCache

  private constructor(context: Context, source: MemorySource | undefined, maximumBytes: number) {
    requireMade(maximumBytes, 'CachingPool', 'CachingPool.create', 'number')
    super()
    this.context = context
    const cache = new BlockCache(context, source, maximumBytes)
    this.#cache = cache
    const what = `A CachingPool of device ${context.device.ordinal}`
    watchForLeak(this, what, () => {
      cache.end()
      return 'its memory is freed when nothing allocated from it is left'
    })
  }

  /** Creates a pool without memory. @throws TypeError, RangeError */
  static create(owner: DeviceOrContext, options: CachingPoolOptions = {}): CachingPool {
    return CachingPool._create(owner, options, 'CachingPool.create')
  }

  /** @internal Creates a pool. Errors name the function `api`. */
  static _create(owner: DeviceOrContext, options: CachingPoolOptions, api: string): CachingPool {
    const context = contextOf(owner, api)
    requireOptions(options, api, cachingPoolKeys)
    const { maximumBytes, source } = options
    const maximum =
      maximumBytes === undefined ? Number.POSITIVE_INFINITY : requireInteger(maximumBytes, api, 'maximumBytes', 0)
    if (source !== undefined && !(isMethod(source, 'allocate') && isMethod(source, 'free'))) {
      throw wrongType(api, 'source', 'an object with the functions allocate and free', source)
    }
    return new CachingPool(context, source, maximum)
  }

  /** The device of the pool. */
  get device(): Context['device'] {
    return this.context.device
  }

  /**
   * Allocates memory for later work of `stream`.
   *
   * dispose() and disposeOn() return the memory to the pool without waiting. If work of another stream uses the buffer,
   * call {@link recordUse}. Launches of graphs that use the buffer are recorded automatically.
   * @throws TypeError, RangeError; BusyError when no free block fits while this thread captures in a mode other than
   * `relaxed`; StatusError when there is not enough memory, even after the pool freed its free blocks
   *
   * @example
   * const scratch = pool.allocate(stream, 'f32', 1024)
   * kernel.launch({ grid: 4, block: 256, stream }, scratch)
   * scratch.dispose() // the launch can still use the memory
   */
  allocate<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E> {
    const api = 'CachingPool.allocate'
    if (!isStream(stream)) requireStream(stream, api)
    const byteLength = bytesFor(dtype, length, api)
    this.#requireUsable(stream, api)
    if (isCaptured(this.context, stream._handle)) {
      const expected = 'one that is not captured (DeviceBuffer.allocateOn gives a graph memory of its own)'
      throw wrongType(api, 'stream', expected, 'a captured one')
    }
    if (byteLength === 0) return DeviceBuffer._allocateWith(dtype, length, api, () => Allocation.empty(this.context))
    return DeviceBuffer._inBlock(this.#cache.take(stream, byteLength), dtype, length)
  }

  /**
   * Records that work of another stream uses a buffer.
   *
   * After the buffer's dispose(), the pool reuses the memory only when that stream's work queued before dispose()
   * completes. If the stream is being captured, the graph keeps the buffer: its launch throws after the buffer was
   * disposed of.
   * @throws TypeError for a buffer that is not from a caching pool
   */
  recordUse(buffer: DeviceBuffer<ElementType>, stream: Stream): void {
    const api = 'CachingPool.recordUse'
    requireInstance(buffer, api, 'buffer', DeviceBuffer)
    this.#requireUsable(requireStream(stream, api), api)
    buffer._use()
    const block = buffer._block
    if (block?.owner !== this.#cache) throw wrongType(api, 'buffer', 'a buffer from this pool', buffer)
    this.#cache.addUser(block, stream)
    keepCaptured(this.context._handle, stream._handle, [buffer])
  }

  /** Bytes that the pool has from the device. */
  get reserved(): PoolUsage {
    return { current: this.#cache.reservedBytes, high: this.#cache.mostReservedBytes }
  }

  /** Bytes that programs have from the pool: the requested sizes, rounded up to blocks. */
  get used(): PoolUsage {
    return { current: this.#cache.usedBytes, high: this.#cache.mostUsedBytes }
  }

  /** Resets both high-water marks to the current values. */
  resetHighWaterMarks(): void {
    this.#cache.mostReservedBytes = this.#cache.reservedBytes
    this.#cache.mostUsedBytes = this.#cache.usedBytes
  }

  /** Counts of allocations, misses and retries, and bytes that wait for other streams. */
  get statistics(): CachingStatistics {
    const { allocations, misses, retries, waitingBytes } = this.#cache
    return { allocations, misses, retries, waitingBytes }
  }

  /**
   * Frees memory until the pool keeps at most `bytesToKeep` bytes. Resolves with the number of freed bytes. Only
   * segments that are completely free can be freed. A native thread waits for the device's work.
   */
  async trim(bytesToKeep = 0): Promise<number> {
    return this.#cache.trim(this.#bytesToKeep(bytesToKeep, 'CachingPool.trim'))
  }

  /**
   * Like {@link trim}, but blocks the thread until the device's work completes, including the work of other recorded
   * streams.
   */
  trimSync(bytesToKeep = 0): number {
    return this.#cache.trimSync(this.#bytesToKeep(bytesToKeep, 'CachingPool.trimSync'))
  }

  #bytesToKeep(bytes: number, api: string): number {
    requireInteger(bytes, api, 'bytesToKeep', 0)
    this._requireAlive()
    this.context._requireAlive()
    return bytes
  }

  #requireUsable(stream: Stream, api: string): void {
    this._requireAlive()
    if (stream.context === this.context) stream._requireUsable()
    else streamFor(this.context, stream, api)
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { reservedBytes, usedBytes } = this.#cache
    return { device: this.context.device.ordinal, reserved: reservedBytes, used: usedBytes }
  }

  /** Frees free memory when the device's work completes, and other memory when it is returned. */
  protected release(): void {
    forgetLeak(this)
    if (this.context._allocator === this) this.context._allocator = undefined
    this.#cache.end()
  }
}

function isMethod(object: unknown, name: string): boolean {
  return typeof propertyOf(object, name) === 'function'
}

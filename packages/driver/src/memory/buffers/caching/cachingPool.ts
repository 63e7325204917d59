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

/** How a caching pool is made. */
export interface CachingPoolOptions {
  /** The most it may have from the device, in bytes. Default: no limit of its own. */
  readonly maximumBytes?: number | undefined
  /** Where it has memory from. Default: the device (`cuMemAlloc`, `cudaMalloc`). */
  readonly source?: MemorySource | undefined
}

export const cachingPoolKeys: OptionKeys<CachingPoolOptions> = { maximumBytes: true, source: true }

/** What a caching pool has counted since it was made. */
export interface CachingStatistics {
  /** Buffers that came from it. */
  readonly allocations: number
  /** How many of them found nothing free, so that memory came from the device. */
  readonly misses: number
  /** How often there was too little memory and what was free was given back for it. */
  readonly retries: number
  /** Bytes that were given back and that other streams still use. */
  readonly waitingBytes: number
}

/**
 * Memory of a device that is kept and handed out again without a call of the driver, as array libraries do. What a
 * stream gave back its next work may use at once; another stream never gets it before the device has been asked.
 *
 * @example
 * using pool = device.createCachingPool()
 * const buffer = pool.allocate(stream, 'f32', 1024)
 * kernel.launch({ grid: 4, block: 256, stream }, buffer)
 * buffer.dispose() // back to the pool; the launch still has it
 */
export class CachingPool extends Resource implements StreamAllocator {
  protected readonly kind = 'CachingPool'
  /** The context of its device. */
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

  /** Makes a pool, which has no memory at first. @throws TypeError, RangeError */
  static create(owner: DeviceOrContext, options: CachingPoolOptions = {}): CachingPool {
    return CachingPool._create(owner, options, 'CachingPool.create')
  }

  /** @internal The same for another function, which errors name. */
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

  /** The device whose memory it has. */
  get device(): Context['device'] {
    return this.context.device
  }

  /**
   * Memory that work queued on `stream` can use from now on. dispose() and disposeOn() give it back to the pool, and
   * neither waits. Work of any other stream has to be named with {@link recordUse}; a launch of a graph that needs the
   * buffer is noted by itself.
   * @throws TypeError, RangeError; BusyError when nothing free fits while this thread captures in a mode other than
   * `relaxed`; StatusError when there is not enough memory, also after all that is free was given back
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
   * Says that work of another stream uses a buffer. When the buffer is given back, its memory stays aside until what
   * that stream has been given by then has ended. A graph that the stream is captured into keeps the buffer: its launch
   * throws once the buffer was given back. @throws TypeError for a buffer of other memory
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

  /** Bytes that programs have from the pool: what they asked for, rounded up to its blocks. */
  get used(): PoolUsage {
    return { current: this.#cache.usedBytes, high: this.#cache.mostUsedBytes }
  }

  /** Sets both high-water marks to what is there now. */
  resetHighWaterMarks(): void {
    this.#cache.mostReservedBytes = this.#cache.reservedBytes
    this.#cache.mostUsedBytes = this.#cache.usedBytes
  }

  /** How much it has, keeps and has handed out. */
  get statistics(): CachingStatistics {
    const { allocations, misses, retries, waitingBytes } = this.#cache
    return { allocations, misses, retries, waitingBytes }
  }

  /**
   * Gives memory back to the device until at most so many bytes are kept, and resolves with how many those were. Only
   * what nobody has any part of can go. Freeing waits for the work of the device: not on this thread.
   */
  async trim(bytesToKeep = 0): Promise<number> {
    return this.#cache.trim(this.#bytesToKeep(bytesToKeep, 'CachingPool.trim'))
  }

  /**
   * The same, and blocks the thread until the device has ended its work; waits for other streams that were recorded,
   * too.
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

  /** Frees what nobody has when the device has ended its work; the rest is freed when it is given back. */
  protected release(): void {
    forgetLeak(this)
    if (this.context._allocator === this) this.context._allocator = undefined
    this.#cache.end()
  }
}

function isMethod(object: unknown, name: string): boolean {
  return typeof propertyOf(object, name) === 'function'
}

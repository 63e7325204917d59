import { type CUdeviceptr, type CUmemoryPool, cuMemGetAddressRange } from '@shoal/cuda-sys/driver'
import { type MemoryLike, memoryProtocol, outOfRange } from '@shoal/types'
import { afterCapture, isCapturing } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import type { Reaching } from '../../core/context/peers.js'
import { afterUseOfMemory, isAnythingInUse } from '../../core/inUse.js'
import { forgetLeak, releaseAfterFailure, type ShortLived, watchForLeak, watchLater } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { toSpan } from '../../core/ranges/span.js'
import type { Stream } from '../../core/stream/stream.js'
import { halvesOf, type U64Halves, u64Of } from '../../core/u64Halves.js'
import type { Block } from './caching/block.js'
import type { PoolMemory } from './poolTypes.js'
import { grantedRange, type ReachCell } from './reach.js'
import { freeOn, isFreedLater, noteAllocation } from './streamOrdered.js'

/** Where memory comes from. */
interface Origin {
  /** Whether this allocation frees the memory. */
  readonly isOwned: boolean
  /** The stream that allocated the memory and frees it. */
  readonly stream?: Stream
  /** The pool of the memory. */
  readonly pool?: PoolWithLifetime
  /** The block of a caching pool. */
  readonly block?: Block
  /** An object that must live as long as the memory is used. */
  readonly keep?: unknown
  /** The owner of the memory. It must exist at every use. */
  readonly source?: MemoryLike
}

/** The source of memory. It outlives the memory. */
interface MemoryOrigin {
  addUse(): void
  endUse(): void
}

/** A memory pool of a device. */
interface DevicePool extends PoolWithLifetime {
  readonly context: Context
  readonly memory: PoolMemory
}

interface PoolWithLifetime {
  readonly _lifetime: MemoryOrigin | undefined
}

interface RowsWanted {
  /** Row width in bytes. */
  readonly width: number
  readonly height: number
  readonly depth: number
  /** Element size in bytes: 4, 8 or 16. */
  readonly elementBytes: number
}

const borrowed: Origin = { isOwned: false }
const owned: Origin = { isOwned: true }
const noAddress: U64Halves = { low: 0, high: 0 }

/** One piece of device memory, shared by its buffer and the views of that buffer. */
export class Allocation implements ShortLived, ReachCell {
  readonly context: Context
  readonly byteLength: number
  readonly source: MemoryLike | undefined
  readonly keep: unknown
  /** The block of a caching pool, if the memory is one. */
  readonly block: Block | undefined
  /** Whether the memory was freed. */
  freed = false
  reachedBy: Reaching | undefined = undefined
  reachedIn = 0
  readonly #low: number
  readonly #high: number
  readonly #stream: Stream | undefined
  readonly #isOwned: boolean
  readonly #pool: MemoryOrigin | undefined
  #address: bigint | undefined
  #isWatched = false
  #pressure = 0

  private constructor(context: Context, { low, high }: U64Halves, byteLength: number, origin: Origin) {
    this.context = context
    this.byteLength = byteLength
    this.source = origin.source
    this.keep = origin.keep ?? origin.pool
    this.#low = low
    this.#high = high
    this.#stream = origin.stream
    this.#isOwned = origin.isOwned && byteLength > 0
    this.#pool = this.#isOwned ? origin.pool?._lifetime : undefined
    this.block = origin.block
    this.#address = origin.block?.address
  }

  /** Allocates with `cuMemAlloc` or `cudaMalloc`. CUDA has no empty allocation, so zero bytes have address 0. */
  static allocate(context: Context, byteLength: number): Allocation {
    if (byteLength === 0) return Allocation.empty(context)
    const out = scratch()
    context._callWithRoom(byteLength, 'memAlloc', out, byteLength)
    const halves = { low: out.i32[0] as number, high: out.i32[1] as number }
    const allocation = new Allocation(context, halves, byteLength, owned)
    allocation.#address = out.u64[0] as bigint
    return allocation.#begin()
  }

  /**
   * Allocates rows of `width` bytes (`cuMemAllocPitch`, `cudaMalloc3D`). Returns the memory and the distance between
   * rows in bytes.
   */
  static allocatePitched(
    context: Context,
    { width, height, depth, elementBytes }: RowsWanted,
  ): { readonly allocation: Allocation; readonly pitch: number } {
    const out = scratch()
    context._callWithRoom(width * height * depth, 'memAllocPitch', out, width, height, depth, elementBytes)
    const [address = 0n, bytes] = out.u64
    const pitch = Number(bytes)
    return { allocation: Allocation.adopt(context, address, pitch * height * depth), pitch }
  }

  /** Takes ownership of memory that `cuMemFree` frees. */
  static adopt(context: Context, address: bigint, byteLength: number, pool?: PoolWithLifetime): Allocation {
    const origin = pool === undefined ? owned : { ...owned, pool }
    return new Allocation(context, halvesOf(address), byteLength, origin).#begin()
  }

  /** Returns an allocation without memory. */
  static empty(context: Context): Allocation {
    return new Allocation(context, noAddress, 0, borrowed)
  }

  /** Takes memory of `allocateOn` over from its buffer. The buffer has already retained the context. */
  static takeOver(stream: Stream, halves: U64Halves, byteLength: number): Allocation {
    return new Allocation(stream.context, halves, byteLength, { isOwned: true, stream }).#begin(true)
  }

  /** Takes a block of a caching pool over from its buffer. */
  static ofBlock(block: Block, byteLength: number): Allocation {
    const allocation = new Allocation(block.context, block.halves, byteLength, { isOwned: true, block })
    watchLater(allocation)
    return allocation
  }

  /** Allocates from a pool in stream order (`cuMemAllocFromPoolAsync`, `cudaMallocFromPoolAsync`). */
  static allocateFrom(pool: DevicePool, handle: CUmemoryPool, stream: Stream, byteLength: number): Allocation {
    const { context, handle: queue } = stream
    if (byteLength === 0) return Allocation.empty(context)
    const out = scratch()
    context._callWithRoom(byteLength, 'memAllocFromPoolAsync', out, byteLength, handle, queue)
    const [low = 0, high = 0] = out.i32
    if (isCapturing()) noteAllocation(stream, low, high, byteLength)
    return Allocation.adoptOn(stream, u64Of({ low, high }), byteLength, pool)
  }

  /** Takes ownership of a pool's memory that a stream frees. */
  static adoptOn(stream: Stream, address: bigint, byteLength: number, pool: DevicePool): Allocation {
    const { context } = stream
    const deviceOrdinal = pool.memory === 'host' ? -1 : pool.context.device.ordinal
    const origin: Origin = { isOwned: true, stream, pool }
    if (pool.memory === 'managed' || deviceOrdinal === context.device.ordinal) {
      return new Allocation(context, halvesOf(address), byteLength, origin).#begin()
    }
    // The pool's access determines which devices can use the memory, including the stream's own device.
    const range = grantedRange({ address, byteLength, deviceOrdinal, context: context._handle })
    const source: MemoryLike = { [memoryProtocol]: range }
    return new Allocation(context, halvesOf(address), byteLength, { ...origin, source }).#begin()
  }

  /** Wraps memory that another owner frees. */
  static borrow(context: Context, address: bigint, byteLength: number, keep?: unknown): Allocation {
    return new Allocation(context, halvesOf(address), byteLength, { isOwned: false, keep })
  }

  /** Wraps memory of another object, usable while that object has it. */
  static within(context: Context, source: MemoryLike): Allocation {
    const { address, byteLength } = toSpan(source, 'DeviceBuffer.view')
    return new Allocation(context, halvesOf(address), byteLength, { isOwned: false, source })
  }

  /** The first address. */
  get address(): bigint {
    return this.#address ?? this.#readAddress()
  }

  /** A separate method, so that V8 inlines the getter into its callers. */
  #readAddress(): bigint {
    this.#address = u64Of({ low: this.#low, high: this.#high })
    return this.#address
  }

  get disposed(): boolean {
    return this.freed
  }

  /** Frees the memory: on the given stream, on its own stream, or when the device's work completes. */
  free(stream: Stream | undefined = this.#stream): void {
    if (!this.#markFreed()) return
    if (isAnythingInUse()) this.#giveBackAfterUse(stream)
    else this.#giveBack(stream)
  }

  #giveBackAfterUse(stream: Stream | undefined): void {
    afterUseOfMemory('A DeviceBuffer', this.address, this.byteLength, () => this.#giveBack(stream))
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const { context, address } = this
    const [stream, pool, low, high] = [this.#stream, this.#pool, this.#low, this.#high]
    const block = this.block
    this.#pressure = context._pressureOf(this.byteLength)
    const what = `A DeviceBuffer of ${this.byteLength} bytes on device ${context.device.ordinal}`
    watchForLeak(
      this,
      what,
      () => {
        if (block !== undefined) {
          block.giveBack()
          return 'its memory is back in its pool'
        }
        if (stream !== undefined && !stream._isGone) {
          try {
            freeOn(stream, low, high)
          } finally {
            endUse(context, pool)
          }
          return 'its memory is freed on its stream'
        }
        if (context.disposed) {
          endUse(context, pool)
          return 'its memory went with its context'
        }
        freeLate(what, context, address, stream !== undefined, () => endUse(context, pool))
        return 'its memory is freed when the work that uses it has ended'
      },
      'dispose()',
      this.#pressure,
    )
  }

  /** Retains the context and the pool of owned memory, and watches the memory for leaks. */
  #begin(isCounted = false): this {
    if (!this.#isOwned) return this
    if (!isCounted) this.context._addChild()
    this.#pool?.addUse()
    watchLater(this)
    return this
  }

  #giveBack(stream: Stream | undefined): void {
    if (this.block !== undefined) {
      this.block.giveBack(stream)
      return
    }
    const isPlain = stream === undefined && this.#stream === undefined && this.#pool === undefined && !isCapturing()
    if (isPlain && this.context._releases.free(this.#low, this.#high)) return
    if (stream === undefined || stream._isGone) {
      const { context, address } = this
      const [wasOnStream, pool] = [this.#stream !== undefined, this.#pool]
      afterCapture('A DeviceBuffer', () => {
        freeLate('A DeviceBuffer', context, address, wasOnStream, () => endUse(context, pool))
      })
      return
    }
    if (isCapturing() && isFreedLater(stream, this.#low, this.#high)) {
      afterCapture('A DeviceBuffer', () => this.#giveBack(stream))
      return
    }
    try {
      freeOn(stream, this.#low, this.#high)
    } finally {
      endUse(this.context, this.#pool)
    }
  }

  /** Returns whether there was memory to free. */
  #markFreed(): boolean {
    if (this.freed) return false
    this.freed = true
    if (!this.#isOwned) return false
    if (this.#isWatched) forgetLeak(this, this.#pressure)
    return true
  }
}

/** Releases the pool and the context after the memory was freed. */
function endUse(context: Context, pool: MemoryOrigin | undefined): void {
  try {
    pool?.endUse()
  } finally {
    context._removeChild()
  }
}

/**
 * Checks that imported memory has at least `byteLength` bytes. Frees it otherwise.
 * @throws RangeError when the memory is smaller
 */
export function requireImported(allocation: Allocation, api: string): Allocation {
  const { context, byteLength } = allocation
  const address = allocation.address as CUdeviceptr
  const out = scratch()
  try {
    context._callDriver('cuMemGetAddressRange', () => cuMemGetAddressRange(out.address, out.address + 8n, address))
    const available = Number(out.u64[1])
    if (byteLength <= available) return allocation
    throw outOfRange(api, 'pointer.length', `of at most ${available} bytes, which is what there is`, byteLength)
  } catch (error) {
    releaseAfterFailure('Memory of a pool', () => allocation.free())
    throw error
  }
}

/**
 * Frees memory through the release queue, because the call waits for the device.
 * @param waitFirst for stream-ordered memory without its stream: freeing such memory does not wait for the device's
 * work
 */
export function freeLate(what: string, context: Context, address: bigint, waitFirst: boolean, after: () => void): void {
  const free = context._releaseCall('memFree', address as CUdeviceptr)
  context._releases.add(what, waitFirst ? [context._releaseCall('ctxSynchronize'), free] : [free], after)
}

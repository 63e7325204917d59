import {
  checkRelease,
  forgetLeak,
  MemoryPoolObject,
  type ShortLived,
  Status,
  scratch,
  type Words,
  watchForLeak,
  watchLater,
  wordsOf,
  wordsValue,
} from '@shoal/cuda-base'
import {
  type CUdeviceptr,
  type CUmemoryPool,
  cuCtxSynchronize,
  cuMemAlloc,
  cuMemAllocFromPoolAsync,
  cuMemFree,
  cuMemFreeAsync,
} from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import { DisposedError, type MemoryLike, toMemoryRange } from '@shoal/types'
import type { Context } from '../context.js'
import type { Stream } from '../stream.js'
import { freeOn } from './streamOrdered.js'

/** One piece of device memory, shared by a buffer and the views of it. */
export class Allocation implements ShortLived {
  readonly context: Context
  readonly byteLength: number
  /** Whether the memory was given back. */
  freed = false
  #isWatched = false
  /** The stream it was allocated on, which also frees it. */
  readonly #stream: Stream | undefined
  readonly #isOwned: boolean
  readonly #low: number
  readonly #high: number
  #address: bigint | undefined
  /** Whatever must live as long as borrowed memory is used. */
  readonly keep: unknown
  /** Memory of another object, which has to be there still whenever it is used. */
  readonly source: MemoryLike | undefined

  private constructor(
    context: Context,
    low: number,
    high: number,
    byteLength: number,
    isOwned: boolean,
    stream?: Stream,
    keep?: unknown,
    memory?: MemoryLike,
  ) {
    this.context = context
    this.#low = low
    this.#high = high
    this.byteLength = byteLength
    this.#stream = stream
    this.#isOwned = isOwned && byteLength > 0
    this.keep = keep
    this.source = memory
  }

  /** For memory that is to be given back: its context stays, and the collector looks out for it. */
  #own(): this {
    if (!this.#isOwned) return this
    this.context._addChild()
    if (this.keep instanceof MemoryPoolObject) this.keep._addUse()
    watchLater(this)
    return this
  }

  /** Memory that {@link allocateOn} made, from the buffer that had it so far. */
  static takeOver(stream: Stream, { low, high }: Words, byteLength: number): Allocation {
    const allocation = new Allocation(stream.context, low, high, byteLength, true, stream)
    watchLater(allocation)
    return allocation
  }

  static #at(
    context: Context,
    address: bigint,
    byteLength: number,
    isOwned: boolean,
    stream?: Stream,
    keep?: unknown,
    memory?: MemoryLike,
  ): Allocation {
    const { low, high } = wordsOf(address)
    return new Allocation(context, low, high, byteLength, isOwned, stream, keep, memory).#own()
  }

  get disposed(): boolean {
    return this.freed
  }

  get address(): bigint {
    this.#address ??= wordsValue({ low: this.#low, high: this.#high })
    return this.#address
  }

  /** `cuMemAlloc`. CUDA has no empty allocation: zero bytes are address 0. */
  static allocate(context: Context, byteLength: number): Allocation {
    if (byteLength === 0) return Allocation.empty(context)
    const out = scratch()
    context._call('cuMemAlloc', () => cuMemAlloc(out, byteLength))
    return Allocation.#at(context, out.u64[0] as bigint, byteLength, true)
  }

  /** No memory: CUDA has no empty allocation. */
  static empty(context: Context): Allocation {
    return new Allocation(context, 0, 0, 0, false)
  }

  /** `cuMemAllocFromPoolAsync`; `keep` is the pool's object. */
  static allocateFrom(keep: object, pool: CUmemoryPool, stream: Stream, byteLength: number): Allocation {
    const { context, handle } = stream
    if (byteLength === 0) return Allocation.empty(context)
    const out = scratch()
    context._call('cuMemAllocFromPoolAsync', () => cuMemAllocFromPoolAsync(out, byteLength, pool, handle))
    return Allocation.adoptOn(stream, out.u64[0] as bigint, byteLength, keep)
  }

  /** Takes over memory that is to be freed on a stream. */
  static adoptOn(stream: Stream, address: bigint, byteLength: number, keep: object): Allocation {
    return Allocation.#at(stream.context, address, byteLength, true, stream, keep)
  }

  /** Memory that somebody else frees. */
  static borrow(context: Context, address: bigint, byteLength: number, keep?: unknown): Allocation {
    return Allocation.#at(context, address, byteLength, false, undefined, keep)
  }

  /** Memory of another object, as long as that has it. */
  static within(context: Context, memory: MemoryLike): Allocation {
    const { address, byteLength } = toMemoryRange(memory)
    return Allocation.#at(context, address, byteLength, false, undefined, undefined, memory)
  }

  requireAlive(kind: string): void {
    if (this.freed) throw new DisposedError(kind)
    this.context._requireAlive()
  }

  /** Gives the memory back: `cuMemFree`, which waits for the work that uses it, or `cuMemFreeAsync` on its stream. */
  free(stream: Stream | undefined = this.#stream): void {
    if (!this.#markFreed()) return
    try {
      if (stream !== undefined && !stream.disposed) {
        this.#freeOn(stream)
      } else if (this.#stream !== undefined) {
        // Its stream is gone and cuMemFree does not wait for stream-ordered memory, so wait for everything.
        this.context._release('cuCtxSynchronize', () => cuCtxSynchronize())
        this.context._release('cuMemFree', () => cuMemFree(this.address as CUdeviceptr))
      } else {
        this.context._release('cuMemFree', () => cuMemFree(this.address as CUdeviceptr))
      }
    } finally {
      endUse(this.context, this.keep)
    }
  }

  #freeOn(stream: Stream): void {
    freeOn(stream, this.#low, this.#high)
  }

  /** Like {@link free}, without blocking this thread while work still uses the memory. */
  async freeOffThread(): Promise<void> {
    if (this.#stream !== undefined && !this.#stream.disposed) return this.free()
    if (!this.#markFreed()) return
    const { context } = this
    try {
      if (context.disposed) return
      for (const status of await freeLater(context, this.address, this.#stream !== undefined)) {
        checkRelease(status, 'cuMemFree')
      }
    } finally {
      endUse(context, this.keep)
    }
  }

  /** Whether there was something to free. */
  #markFreed(): boolean {
    if (this.freed) return false
    this.freed = true
    if (!this.#isOwned) return false
    if (this.#isWatched) forgetLeak(this)
    return true
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const { context, address, byteLength, keep } = this
    const stream = this.#stream
    watchForLeak(this, `A DeviceBuffer of ${byteLength} bytes on device ${context.device.ordinal}`, () => {
      if (stream !== undefined && !stream.disposed) {
        try {
          context._release('cuMemFreeAsync', () => cuMemFreeAsync(address as CUdeviceptr, stream._handle))
        } finally {
          endUse(context, keep)
        }
        return 'its memory is freed on its stream'
      }
      if (context.disposed) return 'its memory went with its context'
      const done = (): void => endUse(context, keep)
      freeLater(context, address, stream !== undefined).then(done, done)
      return 'its memory is freed when the work that uses it has ended'
    })
  }
}

/** The memory is gone: its context may go, and the pool it came from. */
function endUse(context: Context, keep: unknown): void {
  try {
    if (keep instanceof MemoryPoolObject) keep._endUse()
  } finally {
    context._removeChild()
  }
}

/** Frees on a native thread, because cuMemFree waits for the GPU. */
async function freeLater(context: Context, address: bigint, waitFirst: boolean): Promise<number[]> {
  if (context.disposed) return [Status.success]
  // A reset meanwhile would take the context from under the thread that frees.
  context._addWait()
  try {
    return await offThread({ context: context._handle }, () => {
      if (waitFirst) cuCtxSynchronize()
      cuMemFree(address as CUdeviceptr)
    })
  } finally {
    context._endWait()
  }
}

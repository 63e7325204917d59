import {
  type Context,
  forgetLeak,
  MemoryPoolObject,
  type ShortLived,
  Status,
  scratch,
  watchForLeak,
  watchLater,
} from '@shoal/cuda-base'
import {
  cudaDeviceSynchronize,
  cudaFree,
  cudaFreeAsync,
  cudaMalloc,
  cudaMallocAsync,
  cudaMallocFromPoolAsync,
  type cudaMemPool_t,
} from '@shoal/cuda-sys/runtime'
import { offThread } from '@shoal/ffi'
import { type MemoryLike, toMemoryRange } from '@shoal/types'
import { runtimeErrors } from '../errors.js'
import { callOn, releaseOn } from '../start.js'
import type { Stream } from '../stream.js'

interface Origin {
  /** The stream it was allocated on, which also frees it. */
  readonly stream?: Stream
  readonly isOwned: boolean
  /** Whatever must live as long as the memory is used. */
  readonly keep?: unknown
  /** Memory of another object, which has to be there still whenever it is used. */
  readonly source?: MemoryLike
}

/** One piece of device memory, shared by a `DeviceMemory` and the views of it. */
export class Allocation implements ShortLived {
  readonly context: Context
  readonly address: bigint
  readonly byteLength: number
  readonly source: MemoryLike | undefined
  readonly keep: unknown
  /** Whether the memory was given back. */
  freed = false
  #isWatched = false
  readonly #stream: Stream | undefined
  readonly #isOwned: boolean

  private constructor(context: Context, address: bigint, byteLength: number, origin: Origin) {
    this.context = context
    this.address = address
    this.byteLength = byteLength
    this.source = origin.source
    this.keep = origin.keep
    this.#stream = origin.stream
    this.#isOwned = origin.isOwned && byteLength > 0
    if (!this.#isOwned) return
    context._addChild()
    if (origin.keep instanceof MemoryPoolObject) origin.keep._addUse()
    watchLater(this)
  }

  get disposed(): boolean {
    return this.freed
  }

  /** `cudaMalloc`; zero bytes are address 0. */
  static allocate(context: Context, byteLength: number): Allocation {
    if (byteLength === 0) return new Allocation(context, 0n, 0, { isOwned: false })
    const out = scratch()
    callOn(context, 'cudaMalloc', () => cudaMalloc(out, byteLength))
    return new Allocation(context, out.u64[0] as bigint, byteLength, { isOwned: true })
  }

  /** `cudaMallocAsync`: the memory can be used by work queued on the stream from now on. */
  static allocateOn(stream: Stream, byteLength: number): Allocation {
    const { context, handle } = stream
    if (byteLength === 0) return new Allocation(context, 0n, 0, { isOwned: false })
    const out = scratch()
    callOn(context, 'cudaMallocAsync', () => cudaMallocAsync(out, byteLength, handle))
    return new Allocation(context, out.u64[0] as bigint, byteLength, { isOwned: true, stream })
  }

  /** `cudaMallocFromPoolAsync`; `keep` is the pool's object. */
  static allocateFrom(keep: object, pool: cudaMemPool_t, stream: Stream, byteLength: number): Allocation {
    const { context, handle } = stream
    if (byteLength === 0) return new Allocation(context, 0n, 0, { isOwned: false })
    const out = scratch()
    callOn(context, 'cudaMallocFromPoolAsync', () => cudaMallocFromPoolAsync(out, byteLength, pool, handle))
    return Allocation.adoptOn(stream, out.u64[0] as bigint, byteLength, keep)
  }

  /** Takes over memory that is to be freed on a stream. */
  static adoptOn(stream: Stream, address: bigint, byteLength: number, keep: object): Allocation {
    return new Allocation(stream.context, address, byteLength, { isOwned: true, stream, keep })
  }

  /** Memory that somebody else frees. */
  static borrow(context: Context, address: bigint, byteLength: number, keep?: unknown): Allocation {
    return new Allocation(context, address, byteLength, { isOwned: false, keep })
  }

  /** Memory of another object, as long as that has it. */
  static within(context: Context, source: MemoryLike): Allocation {
    const { address, byteLength } = toMemoryRange(source)
    return new Allocation(context, address, byteLength, { isOwned: false, source })
  }

  /** Gives the memory back: `cudaFree`, which waits for the work that uses it, or `cudaFreeAsync` on its stream. */
  free(stream: Stream | undefined = this.#stream): void {
    if (!this.#markFreed()) return
    const { context, address } = this
    try {
      if (stream !== undefined && !stream.disposed) {
        const handle = stream._handle
        releaseOn(context, 'cudaFreeAsync', () => cudaFreeAsync(address, handle))
        return
      }
      // The stream of stream-ordered memory is gone, and cudaFree does not wait for such memory: wait for everything.
      if (this.#stream !== undefined) releaseOn(context, 'cudaDeviceSynchronize', () => cudaDeviceSynchronize())
      releaseOn(context, 'cudaFree', () => cudaFree(address))
    } finally {
      endUse(context, this.keep)
    }
  }

  /** Like {@link free}, without blocking this thread while work still uses the memory. */
  async freeOffThread(): Promise<void> {
    if (this.#stream !== undefined && !this.#stream.disposed) return this.free()
    if (!this.#markFreed()) return
    const { context } = this
    try {
      for (const status of await freeLater(context, this.address, this.#stream !== undefined)) {
        runtimeErrors.checkRelease(status, 'cudaFree')
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
    watchForLeak(this, `DeviceMemory of ${byteLength} bytes on device ${context.device.ordinal}`, () => {
      if (stream !== undefined && !stream.disposed) {
        try {
          releaseOn(context, 'cudaFreeAsync', () => cudaFreeAsync(address, stream._handle))
        } finally {
          endUse(context, keep)
        }
        return 'it is freed on its stream'
      }
      if (context.disposed) return 'it went with its context'
      const done = (): void => endUse(context, keep)
      freeLater(context, address, stream !== undefined).then(done, done)
      return 'it is freed when the work that uses it has ended'
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

/** Frees on a native thread, because cudaFree waits for the device. */
async function freeLater(context: Context, address: bigint, waitFirst: boolean): Promise<number[]> {
  if (context.disposed) return [Status.success]
  // A reset meanwhile would take the context from under the thread that frees.
  context._addWait()
  try {
    return await offThread({ context: context._handle }, () => {
      if (waitFirst) cudaDeviceSynchronize()
      cudaFree(address)
    })
  } finally {
    context._endWait()
  }
}

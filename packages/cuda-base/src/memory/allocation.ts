import { checkRelease, forgetLeak, type ShortLived, Status, scratch, watchForLeak, watchLater } from '@shoal/cuda-base'
import {
  type CUdeviceptr,
  type CUmemoryPool,
  cuCtxSynchronize,
  cuMemAlloc,
  cuMemAllocAsync,
  cuMemAllocFromPoolAsync,
  cuMemFree,
  cuMemFreeAsync,
} from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import { DisposedError, type MemoryLike, toMemoryRange } from '@shoal/types'
import type { Context } from '../context.js'
import type { Stream } from '../stream.js'

/** One piece of device memory, shared by a buffer and the views of it. */
export class Allocation implements ShortLived {
  readonly context: Context
  readonly address: bigint
  readonly byteLength: number
  /** Whether the memory was given back. */
  freed = false
  /** @internal */
  _isWatched = false
  /** The stream it was allocated on, which also frees it. */
  readonly #stream: Stream | undefined
  readonly #isOwned: boolean
  /** Whatever must live as long as borrowed memory is used. */
  readonly keep: unknown
  /** Memory of another object, which has to be there still whenever it is used. */
  readonly source: MemoryLike | undefined

  private constructor(
    context: Context,
    address: bigint,
    byteLength: number,
    source: {
      readonly stream?: Stream
      readonly isOwned: boolean
      readonly keep?: unknown
      readonly memory?: MemoryLike
    },
  ) {
    this.context = context
    this.address = address
    this.byteLength = byteLength
    this.#stream = source.stream
    this.#isOwned = source.isOwned && byteLength > 0
    this.keep = source.keep
    this.source = source.memory
    if (!this.#isOwned) return
    context._addChild()
    watchLater(this)
  }

  /** `cuMemAlloc`. CUDA has no empty allocation: zero bytes are address 0. */
  static allocate(context: Context, byteLength: number): Allocation {
    if (byteLength === 0) return new Allocation(context, 0n, 0, { isOwned: false })
    const out = scratch()
    context._call('cuMemAlloc', () => cuMemAlloc(out, byteLength))
    return new Allocation(context, out.u64[0] as bigint, byteLength, { isOwned: true })
  }

  /** `cuMemAllocAsync`: the memory can be used by work queued on the stream from now on. */
  static allocateOn(stream: Stream, byteLength: number): Allocation {
    const { context } = stream
    const handle = stream.handle
    if (byteLength === 0) return new Allocation(context, 0n, 0, { isOwned: false })
    const out = scratch()
    context._call('cuMemAllocAsync', () => cuMemAllocAsync(out, byteLength, handle))
    return new Allocation(context, out.u64[0] as bigint, byteLength, { isOwned: true, stream })
  }

  /** `cuMemAllocFromPoolAsync`; `keep` is the pool's object. */
  static allocateFrom(keep: object, pool: CUmemoryPool, stream: Stream, byteLength: number): Allocation {
    const { context, handle } = stream
    if (byteLength === 0) return new Allocation(context, 0n, 0, { isOwned: false })
    const out = scratch()
    context._call('cuMemAllocFromPoolAsync', () => cuMemAllocFromPoolAsync(out, byteLength, pool, handle))
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
  static within(context: Context, memory: MemoryLike): Allocation {
    const { address, byteLength } = toMemoryRange(memory)
    return new Allocation(context, address, byteLength, { isOwned: false, memory })
  }

  requireAlive(kind: string): void {
    if (this.freed) throw new DisposedError(kind)
    this.context._requireAlive()
  }

  /** Gives the memory back: `cuMemFree`, which waits for the work that uses it, or `cuMemFreeAsync` on its stream. */
  free(stream: Stream | undefined = this.#stream): void {
    if (!this.#markFreed()) return
    const pointer = this.address as CUdeviceptr
    try {
      if (stream !== undefined && !stream.disposed) {
        const handle = stream._handle
        this.context._release('cuMemFreeAsync', () => cuMemFreeAsync(pointer, handle))
      } else if (this.#stream !== undefined) {
        // Its stream is gone and cuMemFree does not wait for stream-ordered memory, so wait for everything.
        this.context._release('cuCtxSynchronize', () => cuCtxSynchronize())
        this.context._release('cuMemFree', () => cuMemFree(pointer))
      } else {
        this.context._release('cuMemFree', () => cuMemFree(pointer))
      }
    } finally {
      this.context._removeChild()
    }
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
      context._removeChild()
    }
  }

  /** Whether there was something to free. */
  #markFreed(): boolean {
    if (this.freed) return false
    this.freed = true
    if (!this.#isOwned) return false
    if (this._isWatched) forgetLeak(this)
    return true
  }

  /** @internal */
  _watch(): void {
    const { context, address, byteLength } = this
    const stream = this.#stream
    watchForLeak(this, `A DeviceBuffer of ${byteLength} bytes on device ${context.device.ordinal}`, () => {
      if (stream !== undefined && !stream.disposed) {
        try {
          context._release('cuMemFreeAsync', () => cuMemFreeAsync(address as CUdeviceptr, stream._handle))
        } finally {
          context._removeChild()
        }
        return 'its memory is freed on its stream'
      }
      if (context.disposed) return 'its memory went with its context'
      const done = (): void => context._removeChild()
      freeLater(context, address, stream !== undefined).then(done, done)
      return 'its memory is freed when the work that uses it has ended'
    })
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

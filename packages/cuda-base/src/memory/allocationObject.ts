import { type CUdeviceptr, type CUstream, cuMemGetAddressRange } from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import { DisposedError, type MemoryLike } from '@shoal/types'
import type { NamedCall } from '../calls.js'
import type { Context } from '../context.js'
import { Status, type StatusErrors } from '../errors.js'
import { forgetLeak, giveBackUnused, reclaimLater, type ShortLived, watchForLeak, watchLater } from '../lifetime.js'
import { scratch } from '../native.js'
import type { PoolLife } from './poolLife.js'

/** What gives memory back, by the functions of the driver or of the runtime. */
export interface FreeCalls {
  readonly errors: StatusErrors
  /** Waits for all work of the device. */
  readonly synchronize: NamedCall<[]>
  /** Waits for the work that uses the memory, unless that was allocated on a stream. */
  readonly free: NamedCall<[address: bigint]>
  readonly freeOn: NamedCall<[address: bigint, stream: CUstream]>
}

/** A stream that memory is freed on. */
export interface FreeingStream {
  readonly _handle: CUstream
  /** Whether it, or the object that has it, was disposed of. */
  readonly _isGone: boolean
}

/** Where memory comes from. */
export interface AllocationOrigin<S extends FreeingStream> {
  /** Whether it is to be given back. */
  readonly isOwned: boolean
  /** The stream it was allocated on, which also frees it. */
  readonly stream?: S | undefined
  /** The pool it came from. */
  readonly pool?: { readonly _life: PoolLife | undefined } | undefined
  /** Whatever must live as long as the memory is used. */
  readonly keep?: unknown
  /** Memory of another object, which has to be there still whenever it is used. */
  readonly source?: MemoryLike | undefined
}

/** One piece of device memory, shared by the object it was made for and the views of that. */
export abstract class AllocationObject<S extends FreeingStream = FreeingStream> implements ShortLived {
  readonly context: Context
  readonly byteLength: number
  readonly source: MemoryLike | undefined
  readonly keep: unknown
  /** Whether the memory was given back. */
  freed = false
  readonly #stream: S | undefined
  readonly #isOwned: boolean
  readonly #pool: PoolLife | undefined
  #isWatched = false

  protected constructor(context: Context, byteLength: number, origin: AllocationOrigin<S>) {
    this.context = context
    this.byteLength = byteLength
    this.source = origin.source
    this.keep = origin.keep ?? origin.pool
    this.#stream = origin.stream
    this.#isOwned = origin.isOwned && byteLength > 0
    this.#pool = this.#isOwned ? origin.pool?._life : undefined
  }

  /**
   * To be called once it is made. Memory that is to be given back holds its context and its pool, and the collector looks
   * out for it.
   * @param isCounted whether the context is held already.
   */
  protected begin(isCounted = false): this {
    if (!this.#isOwned) return this
    if (!isCounted) this.context._addChild()
    this.#pool?.addUse()
    watchLater(this)
    return this
  }

  abstract get address(): bigint

  /** What gives it back. */
  protected abstract get calls(): FreeCalls

  /** What a leak warning calls it. */
  protected abstract get what(): string

  get disposed(): boolean {
    return this.freed
  }

  requireAlive(kind: string): void {
    if (this.freed) throw new DisposedError(kind)
    this.context._requireAlive()
  }

  /** Gives the memory back, waiting for the work that uses it, or on its stream, or on another. */
  free(stream: S | undefined = this.#stream): void {
    if (!this.#markFreed()) return
    try {
      if (stream !== undefined && !stream._isGone) this.freeOn(stream)
      else this.#freeNow()
    } finally {
      endUse(this.context, this.#pool)
    }
  }

  /** Like {@link free}, without blocking this thread while work still uses the memory. */
  async freeOffThread(): Promise<void> {
    if (this.#stream !== undefined && !this.#stream._isGone) return this.free()
    if (!this.#markFreed()) return
    try {
      await freeLater(this.calls, this.context, this.address, this.#stream !== undefined)
    } finally {
      endUse(this.context, this.#pool)
    }
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const { context, address, calls, what } = this
    const [stream, pool] = [this.#stream, this.#pool]
    watchForLeak(this, what, () => {
      if (stream !== undefined && !stream._isGone) {
        try {
          releaseOn(calls, context, address, stream)
        } finally {
          endUse(context, pool)
        }
        return 'its memory is freed on its stream'
      }
      if (context.disposed) {
        endUse(context, pool)
        return 'its memory went with its context'
      }
      const freed = freeLater(calls, context, address, stream !== undefined)
      reclaimLater(
        what,
        freed.finally(() => endUse(context, pool)),
      )
      return 'its memory is freed when the work that uses it has ended'
    })
  }

  /** Frees it when a stream that is there gets to it. */
  protected freeOn(stream: S): void {
    releaseOn(this.calls, this.context, this.address, stream)
  }

  #freeNow(): void {
    const { context, address } = this
    const { errors, synchronize, free } = this.calls
    // The stream of stream-ordered memory is gone, and freeing does not wait for such memory: wait for everything.
    if (this.#stream !== undefined) context._release(synchronize.api, synchronize.call, errors)
    context._release(free.api, () => free.call(address), errors)
  }

  /** Whether there was something to free. */
  #markFreed(): boolean {
    if (this.freed) return false
    this.freed = true
    if (!this.#isOwned) return false
    if (this.#isWatched) forgetLeak(this)
    return true
  }
}

function releaseOn({ errors, freeOn }: FreeCalls, context: Context, address: bigint, stream: FreeingStream): void {
  context._release(freeOn.api, () => freeOn.call(address, stream._handle), errors)
}

/** The memory is gone: the pool it came from may go, and its context. */
function endUse(context: Context, pool: PoolLife | undefined): void {
  try {
    pool?.endUse()
  } finally {
    context._removeChild()
  }
}

/**
 * What another process exported is memory of `byteLength` bytes at least, or is freed again.
 * @throws RangeError when it has less.
 */
export function requireImported<A extends AllocationObject>(allocation: A): A {
  const { context, byteLength } = allocation
  const address = allocation.address as CUdeviceptr
  const out = scratch()
  try {
    context._call('cuMemGetAddressRange', () => cuMemGetAddressRange(out.address, out.address + 8n, address))
    const available = Number(out.u64[1])
    if (byteLength <= available) return allocation
    throw new RangeError(`the pointer is said to be of ${byteLength} bytes, and has ${available}`)
  } catch (error) {
    giveBackUnused('Memory of a pool', () => allocation.free())
    throw error
  }
}

/** Frees on a native thread, because that waits for the device. */
async function freeLater(
  { errors, synchronize, free }: FreeCalls,
  context: Context,
  address: bigint,
  waitFirst: boolean,
): Promise<void> {
  if (context.disposed) return
  const calls = waitFirst ? [synchronize.api, free.api] : [free.api]
  // A reset meanwhile would take the context from under the thread that frees.
  context._addWait()
  let statuses: number[]
  try {
    statuses = await offThread({ context: context._handle, stopOnError: false }, () => {
      if (waitFirst) synchronize.call()
      free.call(address)
    })
  } finally {
    context._endWait()
  }
  for (const [index, api] of calls.entries()) errors.checkRelease(statuses[index] ?? Status.success, api)
}

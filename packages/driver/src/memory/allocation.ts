import {
  AllocationObject,
  type AllocationOrigin,
  driverErrors,
  type FreeCalls,
  type MemoryPoolObject,
  scratch,
  type Words,
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
import { type MemoryLike, toMemoryRange } from '@shoal/types'
import type { Context } from '../context.js'
import type { Stream } from '../stream.js'
import { freeOn } from './streamOrdered.js'

const calls: FreeCalls = {
  errors: driverErrors,
  synchronize: { api: 'cuCtxSynchronize', call: () => cuCtxSynchronize() },
  free: { api: 'cuMemFree', call: (address) => cuMemFree(address as CUdeviceptr) },
  freeOn: { api: 'cuMemFreeAsync', call: (address, stream) => cuMemFreeAsync(address as CUdeviceptr, stream) },
}

/** One piece of device memory, shared by a buffer and the views of it. */
export class Allocation extends AllocationObject<Stream> {
  declare readonly context: Context
  readonly #low: number
  readonly #high: number
  #address: bigint | undefined

  private constructor(
    context: Context,
    { low, high }: Words,
    byteLength: number,
    origin: AllocationOrigin<Stream> = { isOwned: false },
  ) {
    super(context, byteLength, origin)
    this.#low = low
    this.#high = high
  }

  /** Memory that `allocateOn` made, from the buffer that had it so far. */
  static takeOver(stream: Stream, words: Words, byteLength: number): Allocation {
    return new Allocation(stream.context, words, byteLength, { isOwned: true, stream }).begin(true)
  }

  /** `cuMemAlloc`. CUDA has no empty allocation: zero bytes are address 0. */
  static allocate(context: Context, byteLength: number): Allocation {
    if (byteLength === 0) return Allocation.empty(context)
    const out = scratch()
    context._call('cuMemAlloc', () => cuMemAlloc(out, byteLength))
    return new Allocation(context, wordsOf(out.u64[0] as bigint), byteLength, { isOwned: true }).begin()
  }

  /** No memory: CUDA has no empty allocation. */
  static empty(context: Context): Allocation {
    return new Allocation(context, noAddress, 0)
  }

  /** `cuMemAllocFromPoolAsync` */
  static allocateFrom(pool: MemoryPoolObject, handle: CUmemoryPool, stream: Stream, byteLength: number): Allocation {
    const { context, handle: queue } = stream
    if (byteLength === 0) return Allocation.empty(context)
    const out = scratch()
    context._call('cuMemAllocFromPoolAsync', () => cuMemAllocFromPoolAsync(out, byteLength, handle, queue))
    return Allocation.adoptOn(stream, out.u64[0] as bigint, byteLength, pool)
  }

  /** Takes over memory of a pool that is to be freed on a stream. */
  static adoptOn(stream: Stream, address: bigint, byteLength: number, pool: MemoryPoolObject): Allocation {
    return new Allocation(stream.context, wordsOf(address), byteLength, { isOwned: true, stream, pool }).begin()
  }

  /** Memory that somebody else frees. */
  static borrow(context: Context, address: bigint, byteLength: number, keep?: unknown): Allocation {
    return new Allocation(context, wordsOf(address), byteLength, { isOwned: false, keep })
  }

  /** Memory of another object, as long as that has it. */
  static within(context: Context, source: MemoryLike): Allocation {
    const { address, byteLength } = toMemoryRange(source)
    return new Allocation(context, wordsOf(address), byteLength, { isOwned: false, source })
  }

  get address(): bigint {
    this.#address ??= wordsValue({ low: this.#low, high: this.#high })
    return this.#address
  }

  protected get calls(): FreeCalls {
    return calls
  }

  protected get what(): string {
    return `A DeviceBuffer of ${this.byteLength} bytes on device ${this.context.device.ordinal}`
  }

  protected override freeOn(stream: Stream): void {
    freeOn(stream, this.#low, this.#high)
  }
}

const noAddress: Words = { low: 0, high: 0 }

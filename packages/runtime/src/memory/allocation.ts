import {
  AllocationObject,
  type AllocationOrigin,
  type Context,
  type FreeCalls,
  type MemoryPoolObject,
  scratch,
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
import { type MemoryLike, toMemoryRange } from '@shoal/types'
import { runtimeErrors } from '../errors.js'
import { callOn } from '../start.js'
import type { Stream } from '../stream.js'

const calls: FreeCalls = {
  errors: runtimeErrors,
  synchronize: { api: 'cudaDeviceSynchronize', call: () => cudaDeviceSynchronize() },
  free: { api: 'cudaFree', call: (address) => cudaFree(address) },
  freeOn: { api: 'cudaFreeAsync', call: (address, stream) => cudaFreeAsync(address, stream) },
}

/** One piece of device memory, shared by a `DeviceMemory` and the views of it. */
export class Allocation extends AllocationObject<Stream> {
  readonly address: bigint

  private constructor(
    context: Context,
    address: bigint,
    byteLength: number,
    origin: AllocationOrigin<Stream> = { isOwned: false },
  ) {
    super(context, byteLength, origin)
    this.address = address
    this.begin()
  }

  /** `cudaMalloc`; zero bytes are address 0. */
  static allocate(context: Context, byteLength: number): Allocation {
    if (byteLength === 0) return new Allocation(context, 0n, 0)
    const out = scratch()
    callOn(context, 'cudaMalloc', () => cudaMalloc(out, byteLength))
    return new Allocation(context, out.u64[0] as bigint, byteLength, { isOwned: true })
  }

  /** `cudaMallocAsync`: the memory can be used by work queued on the stream from now on. */
  static allocateOn(stream: Stream, byteLength: number): Allocation {
    const { context, handle } = stream
    if (byteLength === 0) return new Allocation(context, 0n, 0)
    const out = scratch()
    callOn(context, 'cudaMallocAsync', () => cudaMallocAsync(out, byteLength, handle))
    return new Allocation(context, out.u64[0] as bigint, byteLength, { isOwned: true, stream })
  }

  /** `cudaMallocFromPoolAsync` */
  static allocateFrom(pool: MemoryPoolObject, handle: cudaMemPool_t, stream: Stream, byteLength: number): Allocation {
    const { context, handle: queue } = stream
    if (byteLength === 0) return new Allocation(context, 0n, 0)
    const out = scratch()
    callOn(context, 'cudaMallocFromPoolAsync', () => cudaMallocFromPoolAsync(out, byteLength, handle, queue))
    return Allocation.adoptOn(stream, out.u64[0] as bigint, byteLength, pool)
  }

  /** Takes over memory of a pool that is to be freed on a stream. */
  static adoptOn(stream: Stream, address: bigint, byteLength: number, pool: MemoryPoolObject): Allocation {
    return new Allocation(stream.context, address, byteLength, { isOwned: true, stream, pool })
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

  protected get calls(): FreeCalls {
    return calls
  }

  protected get what(): string {
    return `DeviceMemory of ${this.byteLength} bytes on device ${this.context.device.ordinal}`
  }
}

import type { CUdevice } from '@shoal/cuda-sys/driver'
import { type ElementType, propertyOf, wrongType } from '@shoal/types'
import type { Context } from '../core/context/context.js'
import { Device } from '../core/device/device.js'
import { Event, type EventOptions } from '../core/event/event.js'
import { Stream, type StreamOptions } from '../core/stream/stream.js'
import { CachingPool, type CachingPoolOptions } from './buffers/caching/cachingPool.js'
import { GrowableBuffer, type GrowableBufferOptions } from './buffers/growableBuffer.js'
import { MemoryPool } from './buffers/memoryPool.js'
import type { MemoryPoolOptions } from './buffers/poolTypes.js'
import type { StreamAllocator } from './buffers/streamAllocator.js'
import { PhysicalMemory } from './vmm/physicalMemory.js'
import {
  type AllocationOptions,
  type Granularity,
  granularityAt,
  type PhysicalMemoryOptions,
} from './vmm/properties.js'

const defaultStreams = new WeakMap<Context, Stream>()

/**
 * The methods of {@link Device} that make objects. They are in a file of their own, so that contexts, which name
 * devices, import no memory.
 */
export abstract class DeviceFactories {
  abstract readonly ordinal: number
  abstract readonly handle: CUdevice
  abstract readonly primaryContext: Context

  /** The stream that work goes to when none is named: the legacy or the per-thread one, see `setStreamMode`. */
  get defaultStream(): Stream {
    const context = this.primaryContext
    let stream = defaultStreams.get(context)
    if (stream === undefined) {
      stream = Stream.borrow(context, 0n)
      defaultStreams.set(context, stream)
    }
    return stream
  }

  /** Makes a stream (`cuStreamCreateWithPriority`, `cudaStreamCreateWithPriority`). */
  createStream(options: StreamOptions = {}): Stream {
    return Stream._create(this.primaryContext, options, 'Device.createStream')
  }

  /** Makes an event, without timing unless asked (`cuEventCreate`, `cudaEventCreateWithFlags`). */
  createEvent(options: EventOptions = {}): Event {
    return Event._create(this.primaryContext, options, 'Device.createEvent')
  }

  /** Makes a pool of memory on the device (`cuMemPoolCreate`, `cudaMemPoolCreate`). */
  createMemoryPool(options: MemoryPoolOptions = {}): MemoryPool {
    return MemoryPool._create(this, options, 'Device.createMemoryPool')
  }

  /** A pool that hands out memory again without a call of the driver. */
  createCachingPool(options: CachingPoolOptions = {}): CachingPool {
    return CachingPool._create(this, options, 'Device.createCachingPool')
  }

  /**
   * Where `DeviceBuffer.allocateOn` takes memory of this device from, as seen from this package and thread. Undefined:
   * from the device's current pool.
   */
  get allocator(): StreamAllocator | undefined {
    return this.primaryContext._allocator as StreamAllocator | undefined
  }

  set allocator(allocator: StreamAllocator | undefined) {
    if (allocator !== undefined && typeof propertyOf(allocator, 'allocate') !== 'function') {
      throw wrongType('Device.allocator', 'allocator', 'a pool, or an object with the function allocate', allocator)
    }
    this.primaryContext._allocator = allocator
  }

  /** The pool that streams allocate from when none is named. See `MemoryPool.setCurrent`. */
  get memoryPool(): MemoryPool {
    return MemoryPool.currentOf(this)
  }

  /** The pool that came with the device. */
  get defaultMemoryPool(): MemoryPool {
    return MemoryPool.defaultOf(this)
  }

  /** Bytes that sizes and offsets of memory on the device must be a multiple of (`cuMemGetAllocationGranularity`). */
  allocationGranularity(options: AllocationOptions & { readonly granularity?: Granularity | undefined } = {}): number {
    return granularityAt(this, options, 'Device.allocationGranularity')
  }

  /** Makes memory without an address on the device (`cuMemCreate`). */
  createPhysicalMemory(byteLength: number, options: PhysicalMemoryOptions = {}): PhysicalMemory {
    return PhysicalMemory._create(this, byteLength, options, 'Device.createPhysicalMemory')
  }

  /** Makes typed memory on the device that grows and shrinks in place. */
  createGrowableBuffer<E extends ElementType>(dtype: E, options: GrowableBufferOptions): GrowableBuffer<E> {
    return GrowableBuffer._reserve(this, dtype, options, 'Device.createGrowableBuffer')
  }
}

declare module '../core/device/device.js' {
  interface Device extends DeviceFactories {}
}

for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(DeviceFactories.prototype))) {
  if (name !== 'constructor') Object.defineProperty(Device.prototype, name, descriptor)
}

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
 * The methods of {@link Device} that create objects. A separate file, so that contexts can import devices without
 * memory.
 */
export abstract class DeviceFactories {
  abstract readonly ordinal: number
  abstract readonly handle: CUdevice
  abstract readonly primaryContext: Context

  /** The stream for work without a stream: the legacy or the per-thread default stream (see `setStreamMode`). */
  get defaultStream(): Stream {
    const context = this.primaryContext
    let stream = defaultStreams.get(context)
    if (stream === undefined) {
      stream = Stream.borrow(context, 0n)
      defaultStreams.set(context, stream)
    }
    return stream
  }

  /**
   * Creates a stream (`cuStreamCreateWithPriority`, `cudaStreamCreateWithPriority`).
   *
   * @example
   * using stream = device.createStream({ nonBlocking: true })
   * await buffer.copyFrom(samples, { stream }).toArray({ stream })
   */
  createStream(options: StreamOptions = {}): Stream {
    return Stream._create(this.primaryContext, options, 'Device.createStream')
  }

  /**
   * Creates an event, by default without timing (`cuEventCreate`, `cudaEventCreateWithFlags`).
   *
   * @example
   * using done = device.createEvent()
   * producer.record(done)
   * consumer.waitEvent(done) // later work of consumer waits
   */
  createEvent(options: EventOptions = {}): Event {
    return Event._create(this.primaryContext, options, 'Device.createEvent')
  }

  /** Creates a pool of the device's memory (`cuMemPoolCreate`, `cudaMemPoolCreate`). */
  createMemoryPool(options: MemoryPoolOptions = {}): MemoryPool {
    return MemoryPool._create(this, options, 'Device.createMemoryPool')
  }

  /** Creates a pool that reuses freed memory without a driver call. */
  createCachingPool(options: CachingPoolOptions = {}): CachingPool {
    return CachingPool._create(this, options, 'Device.createCachingPool')
  }

  /**
   * Allocator of `DeviceBuffer.allocateOn` for this device, in this package and thread. Undefined: the device's current
   * pool.
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

  /** The device's current pool, from which streams allocate by default. See `MemoryPool.setCurrent`. */
  get memoryPool(): MemoryPool {
    return MemoryPool.currentOf(this)
  }

  /** The device's default pool. */
  get defaultMemoryPool(): MemoryPool {
    return MemoryPool.defaultOf(this)
  }

  /**
   * Returns the granularity for sizes and offsets of the device's memory, in bytes (`cuMemGetAllocationGranularity`).
   */
  allocationGranularity(options: AllocationOptions & { readonly granularity?: Granularity | undefined } = {}): number {
    return granularityAt(this, options, 'Device.allocationGranularity')
  }

  /** Creates device memory without an address (`cuMemCreate`). */
  createPhysicalMemory(byteLength: number, options: PhysicalMemoryOptions = {}): PhysicalMemory {
    return PhysicalMemory._create(this, byteLength, options, 'Device.createPhysicalMemory')
  }

  /** Creates typed device memory that grows and shrinks in place. */
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

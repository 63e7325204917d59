import type { ElementType } from '@shoal/types'
import type { Stream } from '../../core/stream/stream.js'
import type { DeviceBuffer } from './deviceBuffer.js'

/**
 * Where `DeviceBuffer.allocateOn` takes memory from when it is a device's `allocator`: a `MemoryPool`, a `CachingPool`,
 * or an object of the program's own.
 */
export interface StreamAllocator {
  /** Memory that work queued on `stream` can use from now on. */
  allocate<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E>
}

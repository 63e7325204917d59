import type { ElementType } from '@shoal/types'
import type { Stream } from '../../core/stream/stream.js'
import type { DeviceBuffer } from './deviceBuffer.js'

/**
 * A device's `allocator`, from which `DeviceBuffer.allocateOn` takes memory: a `MemoryPool`, a `CachingPool`, or an
 * object of the program.
 */
export interface StreamAllocator {
  /** Allocates memory for later work of `stream`. */
  allocate<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E>
}

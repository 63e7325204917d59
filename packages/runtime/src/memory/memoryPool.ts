import {
  type MemoryPoolOptions as BaseOptions,
  MemoryPool as BasePool,
  type ShareableHandle,
} from '@shoal/driver/shared'
import { type DeviceLike, isInstance } from '@shoal/types'
import { type DeviceOption, deviceOrCurrent, onlyOwner, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How a pool is made. */
export interface MemoryPoolOptions extends BaseOptions, DeviceOption {}

/** A pool of memory that streams allocate from and free to in their order. */
export type MemoryPool = BasePool
export const MemoryPool = withFactories(BasePool, {
  /**
   * Makes a pool on the current device, or the one named (`cudaMemPoolCreate`).
   * @throws StatusError when the device cannot export as asked.
   */
  create(options: MemoryPoolOptions = {}): MemoryPool {
    return BasePool.create(...ownerAndRest(options, 'MemoryPool.create'))
  },

  /** The pool that came with the device (`cudaDeviceGetDefaultMemPool`). dispose() leaves it alone. */
  defaultOf(device?: DeviceLike | number): MemoryPool {
    return BasePool.defaultOf(deviceOrCurrent(device, 'MemoryPool.defaultOf'))
  },

  /** The pool that streams of the device allocate from when none is named (`cudaDeviceGetMemPool`). */
  currentOf(device?: DeviceLike | number): MemoryPool {
    return BasePool.currentOf(deviceOrCurrent(device, 'MemoryPool.currentOf'))
  },

  /**
   * A pool of `@shoal/driver` as one of this package: a `CUmemoryPool` and a `cudaMemPool_t` are the same handle. It is
   * borrowed: the other object must live as long as this one is used.
   */
  from(pool: MemoryPool): MemoryPool {
    return BasePool.from(deviceOrCurrent(isInstance(pool, BasePool) ? pool.device : undefined, 'MemoryPool.from'), pool)
  },

  /**
   * A pool that another process exported (`cudaMemPoolImportFromShareableHandle`). Nothing can be allocated from it;
   * `importPointer` takes what the other process allocated. The handle stays the caller's.
   */
  import(handle: ShareableHandle<'pool'>, options: DeviceOption = {}): MemoryPool {
    return BasePool.import(onlyOwner(options, 'MemoryPool.import'), handle)
  },
})

import {
  type MemoryPoolOptions as BaseOptions,
  MemoryPool as BasePool,
  type ShareableHandle,
} from '@shoal/driver/shared'
import { type DeviceLike, isInstance } from '@shoal/types'
import { type DeviceOption, deviceOrCurrent, onlyOwner, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of a pool. */
export interface MemoryPoolOptions extends BaseOptions, DeviceOption {}

/**
 * A memory pool from which streams allocate, and to which they free, in stream order.
 *
 * @example
 * using pool = MemoryPool.create()
 * const buffer = pool.allocate(stream, 'f32', 1024)
 * buffer.disposeOn(stream)
 */
export type MemoryPool = BasePool
export const MemoryPool = withFactories(BasePool, {
  /**
   * Creates a pool on the current or the given device (`cudaMemPoolCreate`).
   *
   * @throws StatusError if the device does not support the requested handle kind.
   */
  create(options: MemoryPoolOptions = {}): MemoryPool {
    return BasePool.create(...ownerAndRest(options, 'MemoryPool.create'))
  },

  /** Returns the device's default pool (`cudaDeviceGetDefaultMemPool`). dispose() does not destroy it. */
  defaultOf(device?: DeviceLike | number): MemoryPool {
    return BasePool.defaultOf(deviceOrCurrent(device, 'MemoryPool.defaultOf'))
  },

  /** Returns the pool that streams of the device use by default (`cudaDeviceGetMemPool`). */
  currentOf(device?: DeviceLike | number): MemoryPool {
    return BasePool.currentOf(deviceOrCurrent(device, 'MemoryPool.currentOf'))
  },

  /**
   * Returns a pool of `@shoal/driver` as a pool of this package.
   *
   * A `CUmemoryPool` and a `cudaMemPool_t` are the same handle. The other object keeps owning the pool, so keep that
   * object as long as you use the pool.
   */
  from(pool: MemoryPool): MemoryPool {
    return BasePool.from(deviceOrCurrent(isInstance(pool, BasePool) ? pool.device : undefined, 'MemoryPool.from'), pool)
  },

  /**
   * Imports a pool that another process exported (`cudaMemPoolImportFromShareableHandle`).
   *
   * This process cannot allocate from the pool; `importPointer` imports allocations of the other process. The caller
   * keeps ownership of the handle.
   */
  import(handle: ShareableHandle<'pool'>, options: DeviceOption = {}): MemoryPool {
    return BasePool.import(onlyOwner(options, 'MemoryPool.import'), handle)
  },
})

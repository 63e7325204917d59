import { type CachingPoolOptions as BaseOptions, CachingPool as BasePool } from '@shoal/driver/shared'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of a caching pool. */
export interface CachingPoolOptions extends BaseOptions, DeviceOption {}

/**
 * A pool that keeps freed device memory and reuses it without a runtime call.
 *
 * @example
 * using pool = CachingPool.create()
 * const buffer = pool.allocate(stream, 'f32', 1024)
 * buffer.dispose() // back to the pool
 */
export type CachingPool = BasePool
export const CachingPool = withFactories(BasePool, {
  /** Creates an empty pool on the current or the given device. */
  create(options: CachingPoolOptions = {}): CachingPool {
    return BasePool.create(...ownerAndRest(options, 'CachingPool.create'))
  },
})

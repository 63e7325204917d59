import { type CachingPoolOptions as BaseOptions, CachingPool as BasePool } from '@shoal/driver/shared'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How a caching pool is made. */
export interface CachingPoolOptions extends BaseOptions, DeviceOption {}

/** Memory of a device that is kept and handed out again without a call of the runtime. */
export type CachingPool = BasePool
export const CachingPool = withFactories(BasePool, {
  /** Makes a pool on the current device, or the one named; it has no memory at first. */
  create(options: CachingPoolOptions = {}): CachingPool {
    return BasePool.create(...ownerAndRest(options, 'CachingPool.create'))
  },
})

import {
  type GrowableOptions as BaseGrowableOptions,
  GrowableRange as BaseGrowableRange,
  growableKeys,
} from '@shoal/driver/shared'
import { type OptionKeys, requireOptions } from '@shoal/types'
import { type DeviceOption, deviceOrCurrent } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of growable memory. */
export interface GrowableOptions extends BaseGrowableOptions, DeviceOption {}

const optionKeys: OptionKeys<GrowableOptions> = { ...growableKeys, device: true }

/** Device memory that grows and shrinks in place, at a fixed address and without copies. */
export type GrowableRange = BaseGrowableRange
export const GrowableRange = withFactories(BaseGrowableRange, {
  /**
   * Reserves addresses for memory of the current or the given device (`cuMemAddressReserve`).
   *
   * `resize` allocates the memory.
   * @throws TypeError, RangeError; StatusError if not enough addresses are free.
   * @example
   * using range = GrowableRange.reserve({ maximumBytes: 2 ** 34 })
   * range.resize(2 ** 30)
   */
  reserve(options: GrowableOptions): GrowableRange {
    const { device, ...rest } = requireOptions<GrowableOptions>(options, 'GrowableRange.reserve', optionKeys)
    return BaseGrowableRange.reserve(deviceOrCurrent(device, 'GrowableRange.reserve'), rest)
  },
})

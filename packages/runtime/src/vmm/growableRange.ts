import {
  type GrowableOptions as BaseGrowableOptions,
  GrowableRange as BaseGrowableRange,
  growableKeys,
} from '@shoal/driver/shared'
import { type OptionKeys, requireOptions } from '@shoal/types'
import { type DeviceOption, deviceOrCurrent } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How growable memory is reserved. */
export interface GrowableOptions extends BaseGrowableOptions, DeviceOption {}

const optionKeys: OptionKeys<GrowableOptions> = { ...growableKeys, device: true }

/** Memory of a device that grows and shrinks in place: its address never changes and nothing is copied. */
export type GrowableRange = BaseGrowableRange
export const GrowableRange = withFactories(BaseGrowableRange, {
  /**
   * Reserves the addresses for memory of the current device or of another one (`cuMemAddressReserve`). There is no
   * memory until `resize`.
   * @throws TypeError, RangeError; StatusError when there are not as many addresses.
   * @example
   * using range = GrowableRange.reserve({ maximumBytes: 2 ** 34 })
   * range.resize(2 ** 30)
   */
  reserve(options: GrowableOptions): GrowableRange {
    const { device, ...rest } = requireOptions<GrowableOptions>(options, 'GrowableRange.reserve', optionKeys)
    return BaseGrowableRange.reserve(deviceOrCurrent(device, 'GrowableRange.reserve'), rest)
  },
})

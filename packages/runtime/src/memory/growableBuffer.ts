import { GrowableBuffer as BaseBuffer, type GrowableBufferOptions as BaseOptions } from '@shoal/driver/shared'
import type { DType, ElementType } from '@shoal/types'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How a growable buffer is made. */
export interface GrowableBufferOptions extends BaseOptions, DeviceOption {}

/** Typed memory of a device that grows and shrinks in place: the address never changes and nothing is copied. */
export type GrowableBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const GrowableBuffer = withFactories(BaseBuffer, {
  /**
   * Reserves the addresses on the current device, or on the one named, and makes the first elements
   * (`cuMemAddressReserve`). @throws RangeError, TypeError; StatusError when there are not as many
   */
  reserve<E extends ElementType>(dtype: E, options: GrowableBufferOptions): GrowableBuffer<E> {
    const [owner, rest] = ownerAndRest(options, 'GrowableBuffer.reserve')
    return BaseBuffer.reserve(owner, dtype, rest)
  },
})

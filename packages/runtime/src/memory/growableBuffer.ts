import { GrowableBuffer as BaseBuffer, type GrowableBufferOptions as BaseOptions } from '@shoal/driver/shared'
import type { DType, ElementType } from '@shoal/types'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of a growable buffer. */
export interface GrowableBufferOptions extends BaseOptions, DeviceOption {}

/**
 * Typed device memory that grows and shrinks in place, at a fixed address and without copies.
 *
 * @example
 * using cache = GrowableBuffer.reserve('f32', { maximumLength: 2 ** 30 }) // only addresses
 * cache.resize(1_000_000).buffer.fill(0)
 */
export type GrowableBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const GrowableBuffer = withFactories(BaseBuffer, {
  /**
   * Reserves addresses on the current or the given device and allocates the first elements (`cuMemAddressReserve`).
   *
   * @throws RangeError, TypeError; StatusError if not enough addresses are free
   */
  reserve<E extends ElementType>(dtype: E, options: GrowableBufferOptions): GrowableBuffer<E> {
    const [owner, rest] = ownerAndRest(options, 'GrowableBuffer.reserve')
    return BaseBuffer.reserve(owner, dtype, rest)
  },
})

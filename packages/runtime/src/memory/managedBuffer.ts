import { ManagedBuffer as BaseBuffer, type ManagedOptions as BaseOptions } from '@shoal/driver/shared'
import type { DType, ElementType } from '@shoal/types'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How managed memory is made. */
export interface ManagedOptions extends BaseOptions, DeviceOption {}

/**
 * Memory that moves between the host and the devices by itself (`cudaMallocManaged`): a real `ArrayBuffer` here, and
 * device memory there. What work in flight writes is seen once that work has ended. dispose() detaches the buffer.
 */
export type ManagedBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const ManagedBuffer = withFactories(BaseBuffer, {
  /**
   * Managed memory for `length` elements, at least one; its contents are whatever was there.
   * @throws FeatureNotSupportedError on devices where the host must not touch such memory while the device is busy,
   * unless it is attached to the host; TypeError, RangeError, StatusError.
   */
  allocate<E extends ElementType>(dtype: E, length: number, options: ManagedOptions = {}): ManagedBuffer<E> {
    const [owner, rest] = ownerAndRest(options, 'ManagedBuffer.allocate')
    return BaseBuffer.allocate(owner, dtype, length, rest)
  },
})

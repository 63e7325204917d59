import { ManagedBuffer as BaseBuffer, type ManagedOptions as BaseOptions } from '@shoal/driver/shared'
import type { DType, ElementType } from '@shoal/types'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of managed memory. */
export interface ManagedOptions extends BaseOptions, DeviceOption {}

/**
 * Memory that migrates between host and devices automatically (`cudaMallocManaged`).
 *
 * The host uses the memory as an `ArrayBuffer`, devices use it as device memory. The host sees results of work after
 * the work has completed. dispose() detaches the `ArrayBuffer`.
 *
 * @example
 * using values = ManagedBuffer.allocate('f32', 1024)
 * values.array.fill(1)
 * values.prefetch(0, { stream }) // moves the memory to device 0
 */
export type ManagedBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const ManagedBuffer = withFactories(BaseBuffer, {
  /**
   * Allocates uninitialized managed memory for `length` elements, at least one.
   *
   * @throws FeatureNotSupportedError on devices where the host must not access managed memory while the device is busy,
   * unless the memory is attached to the host; TypeError, RangeError, StatusError.
   */
  allocate<E extends ElementType>(dtype: E, length: number, options: ManagedOptions = {}): ManagedBuffer<E> {
    const [owner, rest] = ownerAndRest(options, 'ManagedBuffer.allocate')
    return BaseBuffer.allocate(owner, dtype, length, rest)
  },
})

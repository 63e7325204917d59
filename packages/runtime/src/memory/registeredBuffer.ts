import { RegisteredBuffer as BaseBuffer, type RegisterOptions as BaseOptions } from '@shoal/driver/shared'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of registered memory. */
export interface RegisterOptions extends BaseOptions, DeviceOption {}

/**
 * An `ArrayBuffer` of the program, page-locked in place (`cudaHostRegister`).
 *
 * @example
 * const weights = new Float32Array(1 << 24)
 * using registered = RegisteredBuffer.register(weights.buffer)
 * buffer.copyFrom(weights, { stream }) // needs no staging
 */
export type RegisteredBuffer = BaseBuffer
export const RegisteredBuffer = withFactories(BaseBuffer, {
  /** Page-locks a whole `ArrayBuffer` for the current or the given device (`cudaHostRegister`). */
  register(buffer: ArrayBuffer, options: RegisterOptions = {}): RegisteredBuffer {
    const [owner, rest] = ownerAndRest(options, 'RegisteredBuffer.register')
    return BaseBuffer.register(owner, buffer, rest)
  },
})

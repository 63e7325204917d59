import { ShoalError } from '@shoal/types'

/** `Device.reset()` was refused, before anything was destroyed, or the device is being reset at this moment. */
export class DeviceInUseError extends ShoalError {
  static {
    // On the prototype, as errors of the language have it.
    Object.defineProperty(DeviceInUseError.prototype, 'name', {
      value: 'DeviceInUseError',
      configurable: true,
      writable: true,
    })
  }

  readonly code = 'SHOAL_DEVICE_IN_USE'
  /** Ordinal of the device. */
  readonly device: number
  readonly reason: string

  constructor(options: { readonly device: number; readonly reason: string }) {
    super(`device ${options.device}: ${options.reason}`)
    this.device = options.device
    this.reason = options.reason
  }
}

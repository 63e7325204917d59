import { nameErrorClass, ShoalError } from '@shoal/types'

/** `Device.reset()` was refused, before anything was destroyed, or the device is being reset at this moment. */
export class DeviceInUseError extends ShoalError {
  static {
    nameErrorClass(DeviceInUseError, 'DeviceInUseError')
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

import { nameErrorClass, ShoalError } from '@shoal/types'

/** Thrown when `Device.reset()` cannot start, with nothing destroyed, or while the device is being reset. */
export class DeviceInUseError extends ShoalError {
  static {
    nameErrorClass(DeviceInUseError, 'DeviceInUseError')
  }

  readonly code = 'SHOAL_DEVICE_IN_USE'
  /** Ordinal of the device. */
  readonly deviceOrdinal: number
  /** Why the device is in use. */
  readonly reason: string

  constructor(options: { readonly deviceOrdinal: number; readonly reason: string }) {
    super(`device ${options.deviceOrdinal}: ${options.reason}`)
    this.deviceOrdinal = options.deviceOrdinal
    this.reason = options.reason
  }
}

import { nameErrorClass, ShoalError } from '@shoal/types'

/** `Device.reset()` was refused, before anything was destroyed, or the device is being reset at this moment. */
export class DeviceInUseError extends ShoalError {
  static {
    nameErrorClass(DeviceInUseError, 'DeviceInUseError')
  }

  readonly code = 'SHOAL_DEVICE_IN_USE'
  /** Ordinal of the device. */
  readonly deviceOrdinal: number
  /** Why it was refused. */
  readonly reason: string

  constructor(options: { readonly deviceOrdinal: number; readonly reason: string }) {
    super(`device ${options.deviceOrdinal}: ${options.reason}`)
    this.deviceOrdinal = options.deviceOrdinal
    this.reason = options.reason
  }
}

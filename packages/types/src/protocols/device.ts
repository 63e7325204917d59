import { wrongType } from '../arguments/scalars.js'
import { checkVersion, offers, requireOrdinal } from './checks.js'

/** Key of the device protocol: `Symbol.for('cuda.device')`. */
export const deviceProtocol: unique symbol = Symbol.for('cuda.device')

/** Answer of the device protocol, `Symbol.for('cuda.device')`. */
export interface DeviceIdentity {
  /** Version of the protocol. */
  readonly version: 0
  /** The ordinal that `cuDeviceGet` and `cudaSetDevice` take. */
  readonly ordinal: number
}

/** An object that is a CUDA device. */
export interface DeviceLike {
  readonly [deviceProtocol]: DeviceIdentity
}

/** True if a value offers the device protocol. Does not run its getter. */
export function isDeviceLike(value: unknown): value is DeviceLike {
  return offers(value, deviceProtocol)
}

/**
 * Returns the ordinal of a device object or a bare ordinal.
 *
 * The driver checks later that the device exists.
 *
 * @param api - the function, and `name` its parameter, that an error names
 * @throws TypeError when `device` is neither, or the ordinal is not an integer
 * @throws RangeError when the ordinal is negative or exceeds a C `int`
 */
export function toDeviceOrdinal(device: DeviceLike | number, api = 'toDeviceOrdinal', name = 'device'): number {
  if (typeof device === 'number') return requireOrdinal(device, api, name)
  if (!isDeviceLike(device)) {
    throw wrongType(api, name, "an object with [Symbol.for('cuda.device')], or an ordinal", device)
  }
  const answer = device[deviceProtocol]
  checkVersion(answer, 'cuda.device', api, name)
  return requireOrdinal(answer.ordinal, api, `${name}.ordinal`)
}

import { describeValue } from '../describeValue.js'
import { checkVersion } from './checks.js'

/** Key of the device protocol: `Symbol.for('cuda.device')`. */
export const deviceProtocol: unique symbol = Symbol.for('cuda.device')

/** What an object answers at `Symbol.for('cuda.device')`. */
export interface DeviceIdentity {
  readonly version: 0
  /** The ordinal that `cuDeviceGet` and `cudaSetDevice` take. */
  readonly ordinal: number
}

/** An object that is a CUDA device. */
export interface DeviceLike {
  readonly [deviceProtocol]: DeviceIdentity
}

/** Whether a value offers the device protocol. Does not run its getter. */
export function isDeviceLike(value: unknown): value is DeviceLike {
  return typeof value === 'object' && value !== null && deviceProtocol in value
}

/**
 * The ordinal behind a device object or a bare ordinal. Whether such a device exists is for the driver to say.
 *
 * @throws TypeError when `device` is neither
 * @throws RangeError when the ordinal is negative, fractional or beyond a C `int`
 */
export function toDeviceOrdinal(device: DeviceLike | number): number {
  if (typeof device === 'number') return checkedOrdinal(device)
  if (isDeviceLike(device)) {
    const answer = device[deviceProtocol]
    checkVersion(answer, 'cuda.device')
    if (typeof answer.ordinal !== 'number') {
      throw new TypeError(`cuda.device ordinal must be a number, got ${describeValue(answer.ordinal)}`)
    }
    return checkedOrdinal(answer.ordinal)
  }
  throw new TypeError(
    `expected a device: an object with [Symbol.for('cuda.device')] or an ordinal; got ${describeValue(device)}`,
  )
}

function checkedOrdinal(ordinal: number): number {
  if (!Number.isInteger(ordinal) || ordinal < 0 || ordinal > 0x7fff_ffff) {
    throw new RangeError(`a device ordinal is a whole number from 0, got ${ordinal}`)
  }
  return ordinal
}

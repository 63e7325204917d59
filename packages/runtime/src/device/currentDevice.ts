import { cudaGetDevice, cudaSetDevice } from '@shoal/cuda-sys/runtime'
import { scratch } from '@shoal/driver/shared'
import {
  type DeviceLike,
  isPlainObject,
  requireFunction,
  requireOptions,
  requireSynchronous,
  wrongType,
} from '@shoal/types'
import { check, runtimeLibrary } from '../calls/runtimeLibrary.js'
import { Device } from './device.js'

function currentOrdinal(): number {
  const out = scratch()
  check(cudaGetDevice(out), 'cudaGetDevice')
  return out.i32[0] as number
}

/** Returns the default device of this JavaScript thread; initially device 0 (`cudaGetDevice`). */
export function currentDevice(): Device {
  runtimeLibrary.start()
  return Device.get(currentOrdinal())
}

/**
 * Sets the current device of this JavaScript thread (`cudaSetDevice`).
 *
 * Existing objects stay on their device. @throws RangeError for a device that does not exist.
 *
 * @example
 * setDevice(1)
 * using x = DeviceBuffer.zeros('f32', 1024) // on device 1
 */
export function setDevice(device: DeviceLike | number): Device {
  const target = Device._find(device, 'setDevice', 'device')
  check(cudaSetDevice(target.ordinal), 'cudaSetDevice')
  return target
}

/**
 * Runs a synchronous `fn` with another current device.
 *
 * The previous device is restored afterwards.
 *
 * @throws TypeError if `fn` returns a promise.
 *
 * @example
 * const x = withDevice(0, () => DeviceBuffer.zeros('f32', 1024)) // on device 0
 */
export function withDevice<T>(device: DeviceLike | number, fn: (device: Device) => T): T {
  const target = Device._find(device, 'withDevice', 'device')
  requireFunction(fn, 'withDevice', 'fn')
  const before = currentOrdinal()
  try {
    return target.primaryContext.run(() => {
      if (currentOrdinal() !== target.ordinal) check(cudaSetDevice(target.ordinal), 'cudaSetDevice')
      return requireSynchronous(fn(target), 'withDevice')
    })
  } finally {
    if (currentOrdinal() !== before) check(cudaSetDevice(before), 'cudaSetDevice')
  }
}

/** Option that selects the device. */
export interface DeviceOption {
  /** A device of any package, or its ordinal. Default: the current device. */
  readonly device?: DeviceLike | number | undefined
}

/** Returns the given device, or the current device. */
export function deviceOrCurrent(device: DeviceLike | number | undefined, api: string): Device {
  return device === undefined ? currentDevice() : Device._find(device, api, 'device')
}

/** Splits an options object into its device (default: the current one) and the other options. */
export function ownerAndRest<O extends DeviceOption>(
  options: O,
  api: string,
): [owner: Device, rest: Omit<O, 'device'>] {
  if (!isPlainObject(options)) throw wrongType(api, 'options', 'a plain object such as { device }', options)
  const { device, ...rest } = options
  return [deviceOrCurrent(device, api), rest]
}

/** Returns the device of options that allow no other key; default: the current one. */
export function onlyOwner(options: DeviceOption, api: string): Device {
  return deviceOrCurrent(requireOptions<DeviceOption>(options, api, { device: true }).device, api)
}

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

/** The device that this JavaScript thread works on where none is named; device 0 at first (`cudaGetDevice`). */
export function currentDevice(): Device {
  runtimeLibrary.start()
  return Device.get(currentOrdinal())
}

/**
 * Makes a device the current one of this JavaScript thread (`cudaSetDevice`). Objects stay with the device that they
 * were made on. @throws RangeError for a device there is not.
 */
export function setDevice(device: DeviceLike | number): Device {
  const target = Device._find(device, 'setDevice', 'device')
  check(cudaSetDevice(target.ordinal), 'cudaSetDevice')
  return target
}

/**
 * Runs `fn` with a device as the current one and restores the one before. `fn` must not be asynchronous.
 * @throws TypeError when `fn` gives a promise.
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

/** Where something is made. */
export interface DeviceOption {
  /** A device of any package, or its ordinal. Default: the current device. */
  readonly device?: DeviceLike | number | undefined
}

/** The device named, or the current one. */
export function deviceOrCurrent(device: DeviceLike | number | undefined, api: string): Device {
  return device === undefined ? currentDevice() : Device._find(device, api, 'device')
}

/** Takes the option `device` out of an options object: the device it names, or the current one, and the rest. */
export function ownerAndRest<O extends DeviceOption>(
  options: O,
  api: string,
): [owner: Device, rest: Omit<O, 'device'>] {
  if (!isPlainObject(options)) throw wrongType(api, 'options', 'a plain object such as { device }', options)
  const { device, ...rest } = options
  return [deviceOrCurrent(device, api), rest]
}

/** The device that the option names, or the current one, where there is no other option. */
export function onlyOwner(options: DeviceOption, api: string): Device {
  return deviceOrCurrent(requireOptions<DeviceOption>(options, api, { device: true }).device, api)
}

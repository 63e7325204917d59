import { scratch } from '@shoal/cuda-base'
import { cudaGetDevice, cudaSetDevice } from '@shoal/cuda-sys/runtime'
import { type DeviceLike, describeValue } from '@shoal/types'
import { Device } from './device.js'
import { check } from './errors.js'
import { initialize } from './start.js'

function currentOrdinal(): number {
  const out = scratch()
  check(cudaGetDevice(out), 'cudaGetDevice')
  return out.i32[0] as number
}

/** The device that this JavaScript thread works on where none is named; device 0 at first (`cudaGetDevice`). */
export function currentDevice(): Device {
  initialize()
  return Device.get(currentOrdinal())
}

/**
 * Makes a device the current one of this JavaScript thread (`cudaSetDevice`). Objects stay with the device that they
 * were made on. @throws RangeError for a device there is not.
 */
export function setDevice(device: DeviceLike | number): Device {
  const target = Device.from(device)
  check(cudaSetDevice(target.ordinal), 'cudaSetDevice')
  return target
}

/**
 * Runs `fn` with a device as the current one and restores the one before. `fn` must not be asynchronous.
 * @throws TypeError when `fn` gives a promise.
 */
export function withDevice<T>(device: DeviceLike | number, fn: (device: Device) => T): T {
  if (typeof fn !== 'function') throw new TypeError(`fn must be a function, not ${describeValue(fn)}`)
  const target = Device.from(device)
  const before = currentOrdinal()
  try {
    return target.primaryContext.run(() => {
      if (currentOrdinal() !== target.ordinal) check(cudaSetDevice(target.ordinal), 'cudaSetDevice')
      return fn(target)
    })
  } finally {
    if (currentOrdinal() !== before) check(cudaSetDevice(before), 'cudaSetDevice')
  }
}

/** The device named, or the current one. */
export function deviceOrCurrent(device: DeviceLike | number | undefined): Device {
  return device === undefined ? currentDevice() : Device.from(device)
}

import { Device, driverVersion } from '@shoal/driver'
import { definedLibraries, isSoftwareDevice } from '@shoal/ffi'
import { NoDeviceError, type RunOptions } from './options.js'

const needed = 'this needs a GPU; --device sim tries the code on the software device'

/** The devices to measure on. @throws NoDeviceError */
export function devicesFor(options: RunOptions): Device[] {
  if (options.device === 'gpu' && isSoftwareDevice()) {
    throw new NoDeviceError(
      'SHOAL_DEVICE=sim is set: the software device has nothing to measure. --device sim tries the code on it',
    )
  }
  let devices: Device[]
  try {
    devices = Array.from(Device.all())
  } catch (error) {
    throw new NoDeviceError(`${needed}\n${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
  if (devices.length === 0) throw new NoDeviceError(`${needed}\nThere is an NVIDIA driver and no GPU.`)
  if (options.device === 'sim')
    console.log('SOFTWARE DEVICE: the figures below mean nothing, they only show that the code runs\n')
  return devices
}

/** Information about the devices in all results. */
export function aboutDevices(devices: readonly Device[], options: RunOptions) {
  return {
    devices: devices.map((device) => device.name),
    driverVersion: driverVersion().toString(),
    software: options.device === 'sim',
  }
}

/** The file that a library was loaded from. */
export function libraryPath(id: string): string {
  const library = definedLibraries().find((one) => one.id === id)
  if (library === undefined) throw new Error(`no package has defined a library ${id}`)
  return library.load().path
}

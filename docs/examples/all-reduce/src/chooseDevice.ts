import { Device, isSoftwareDevice } from '@shoal/driver'
import { LibraryNotFoundError, StatusError } from '@shoal/types'
import { type Options, UsageError } from './options.js'

/** The devices to use, or why there is no GPU to be used. */
export type Choice = { readonly devices: readonly Device[] } | { readonly noGpu: string }

/** Sets the environment for the software device, which reads it when it is loaded. */
export function prepareSoftwareDevice(options: Options): void {
  process.env['SHOAL_DEVICE'] = 'sim'
  // Files that are named there belong to GPUs, and would be taken before the software device's own.
  delete process.env['SHOAL_CUDA_LIBRARY']
  delete process.env['SHOAL_NCCL_LIBRARY']
  const devices = options.devices ?? (options.ranks !== undefined && options.ranks > 2 ? options.ranks : undefined)
  if (devices !== undefined) process.env['SHOAL_SIM_DEVICES'] = String(devices)
}

export function chooseDevices(options: Options): Choice {
  const all = findDevices()
  if ('noGpu' in all) return all
  const wanted = options.devices ?? all.devices.length
  if (wanted > all.devices.length) throw new UsageError(`--devices ${wanted}: this machine has ${all.devices.length}`)
  const devices = all.devices.slice(0, wanted)
  if (options.ranks !== undefined && options.ranks > devices.length) {
    throw new UsageError(
      `--ranks ${options.ranks} needs ${options.ranks} devices, there ${devices.length === 1 ? 'is' : 'are'} ` +
        `${devices.length}: NCCL refuses two ranks on one device`,
    )
  }
  return { devices }
}

function findDevices(): Choice {
  try {
    const devices = Device.all()
    if (devices.length > 0) return { devices }
    return { noGpu: 'there is an NVIDIA driver and no GPU' }
  } catch (error) {
    if (isSoftwareDevice()) throw error
    if (error instanceof LibraryNotFoundError) return { noGpu: 'there is no NVIDIA driver (libcuda)' }
    // The library exists, but the kernel module of the driver is missing.
    if (error instanceof StatusError && error.api === 'cuInit')
      return { noGpu: `the NVIDIA driver does not start: ${error.code}` }
    throw error
  }
}

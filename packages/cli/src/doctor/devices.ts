import { Device } from '@shoal/driver'
import { StatusError } from '@shoal/types'
import { numaNodeOf } from './machine.js'
import type { DeviceReport, Finding, LinkReport } from './report.js'

export interface DevicesReport {
  readonly devices: readonly DeviceReport[]
  readonly links: readonly LinkReport[]
  readonly findings: readonly Finding[]
}

/** Remedies for a driver that does not start, by its status. */
const remedies: Readonly<Record<string, string>> = {
  CUDA_ERROR_NO_DEVICE: 'check that the GPU is visible: nvidia-smi, CUDA_VISIBLE_DEVICES, and --gpus of a container',
  CUDA_ERROR_SYSTEM_NOT_READY: 'on machines with NVSwitch, start the service nvidia-fabricmanager',
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    'libcuda and the kernel module are of different versions; restart the machine after an update of the driver',
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    'a libcuda for forward compatibility (cuda-compat) was found that this GPU cannot use; remove it from the search path',
  CUDA_ERROR_UNKNOWN: 'run nvidia-smi to check that the kernel module is loaded and /dev/nvidia* exists',
  CUDA_ERROR_MPS_CONNECTION_FAILED: 'the MPS daemon does not answer; restart it, or unset CUDA_MPS_PIPE_DIRECTORY',
}

/** Reports the devices and their links. Never throws; failures become findings. */
export function examineDevices(): DevicesReport {
  try {
    const devices = Device.all()
    if (devices.length === 0) {
      const visible = process.env['CUDA_VISIBLE_DEVICES']
      const message =
        visible === undefined ? 'the driver sees no GPU' : `CUDA_VISIBLE_DEVICES is '${visible}', which hides all GPUs`
      const remedy = visible === undefined ? remedies['CUDA_ERROR_NO_DEVICE'] : 'unset it, or name devices that exist'
      return { devices: [], links: [], findings: [problem('devices', message, remedy)] }
    }
    return { devices: devices.map(describe), links: devices.flatMap((from) => linksOf(from, devices)), findings: [] }
  } catch (error) {
    const words = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    const remedy = error instanceof StatusError ? remedies[error.code] : undefined
    return { devices: [], links: [], findings: [problem('devices', words, remedy)] }
  }
}

function problem(subject: string, message: string, remedy: string | undefined): Finding {
  return { level: 'error', subject, message, remedies: remedy === undefined ? [] : [remedy] }
}

function describe(device: Device): DeviceReport {
  const { major, minor } = device.computeCapability
  return {
    ordinal: device.ordinal,
    name: device.name,
    uuid: device.uuid,
    pciBusId: device.pciBusId,
    computeCapability: `${major}.${minor}`,
    totalBytes: device.totalMemory,
    isSoftware: device.isSoftware,
    multiprocessors: device.attribute('MULTIPROCESSOR_COUNT'),
    hasMulticast: device.attribute('MULTICAST_SUPPORTED') === 1,
    ...(device.isSoftware ? {} : numaNodeOf(device.pciBusId)),
  }
}

function linksOf(from: Device, devices: readonly Device[]): LinkReport[] {
  return devices
    .filter((to) => to !== from)
    .map((to) => ({
      from: from.ordinal,
      to: to.ordinal,
      hasAccess: from.canAccessPeer(to),
      hasNativeAtomics: from.peerAttribute('NATIVE_ATOMIC_SUPPORTED', to) === 1,
      performanceRank: from.peerAttribute('PERFORMANCE_RANK', to),
    }))
}

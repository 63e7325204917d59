import { cpus, release } from 'node:os'
import { Device, driverVersion, isSoftwareDevice } from '@shoal/driver'
import { probe } from '@shoal/ffi'

/** Where a run took place, for its report. */
export interface RunEnvironment {
  readonly date: string
  readonly node: string
  readonly platform: string
  readonly cpu: string
  readonly software: boolean
  readonly driverVersion: string
  readonly devices: readonly {
    readonly ordinal: number
    readonly name: string
    readonly uuid: string
    readonly computeCapability: string
    readonly totalMemory: number
    readonly software: boolean
  }[]
  readonly libraries: ReturnType<typeof probe>
}

/** Reads the environment. @throws LibraryNotFoundError when there is no driver. */
export function readEnvironment(): RunEnvironment {
  const devices = Device.all().map((device) => ({
    ordinal: device.ordinal,
    name: device.name,
    uuid: device.uuid,
    computeCapability: `${device.computeCapability.major}.${device.computeCapability.minor}`,
    totalMemory: device.totalMemory,
    software: device.isSoftware,
  }))
  return {
    date: new Date().toISOString(),
    node: process.version,
    platform: `${process.platform}-${process.arch} ${release()}`,
    cpu: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    software: isSoftwareDevice(),
    driverVersion: driverVersion().toString(),
    devices,
    libraries: probe(),
  }
}

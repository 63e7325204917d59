import { Device, FeatureNotSupportedError, multicastGranularity, ShoalError } from '@shoal/driver'
import { broadcastOnce } from './broadcast.js'

process.exitCode = main()

function main(): number {
  try {
    return run(Device.all())
  } catch (error) {
    if (!(error instanceof ShoalError)) throw error
    console.error(`multicast: ${error.message}`)
    return 2
  }
}

function run(devices: readonly Device[]): number {
  if (devices.length === 0) {
    console.error('multicast: there is no device')
    return 2
  }
  for (const device of devices) {
    const kind = device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'
    const supported = device.attribute('MULTICAST_SUPPORTED') === 1
    console.log(
      `device ${device.ordinal}: ${device.name}${kind}, multicast ${supported ? 'supported' : 'not supported'}`,
    )
  }
  const granularity = askGranularity(devices.length)
  if (!devices.every((device) => device.isSoftware)) {
    console.log(
      'This example stops here on GPUs: a multicast object takes part of the NVLink switches, which belong to the whole ' +
        'machine; on a shared host that can put GPUs out of service for everybody. SHOAL_DEVICE=sim runs all of it.',
    )
    return 0
  }
  if (granularity === undefined) return 2
  return broadcastOnce(devices, granularity)
}

/** What sizes must be a multiple of; undefined where there is no multicast, and why is printed. */
function askGranularity(deviceCount: number): number | undefined {
  // The size plays no part in the answer, but must be one.
  const properties = { deviceCount, byteLength: 2 ** 21, handleTypes: 'posix-fd' } as const
  try {
    const minimum = multicastGranularity(properties, 'minimum')
    const recommended = multicastGranularity(properties)
    console.log(`granularity: minimum ${minimum} bytes, recommended ${recommended} bytes`)
    return minimum
  } catch (error) {
    if (!(error instanceof FeatureNotSupportedError) && !isNotSupported(error)) throw error
    console.log(`granularity: ${(error as Error).message}`)
    return undefined
  }
}

function isNotSupported(error: unknown): boolean {
  return error instanceof ShoalError && error.code === 'CUDA_ERROR_NOT_SUPPORTED'
}

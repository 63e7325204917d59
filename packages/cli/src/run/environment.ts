import { UsageError } from '../command.js'
import type { DeviceMap } from './options.js'

/** Values that ranks need to reach the rendezvous of their job. */
export interface RendezvousInfo {
  /** Address of the rendezvous, as `bootstrap()` reads it. */
  readonly address: string
  readonly secret: string
  /** Path of a file that does not exist yet, through which the ranks' NVSHMEM shares its id. */
  readonly nvshmemId: string
  /** A free port for the program's own use. */
  readonly freePort: number
}

/** Returns a variable that only processes of this job have in their environment. */
export function jobMarker({ address }: RendezvousInfo): string {
  return `SHOAL_RENDEZVOUS=${address}`
}

/** Returns the variables of one rank: those of torchrun, and those that `bootstrap()` reads. */
export function rankEnvironment(
  rank: number,
  ranks: number,
  deviceMap: DeviceMap,
  rendezvous: RendezvousInfo,
  inherited: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  return {
    ...inherited,
    ...deviceVariables(rank, ranks, deviceMap, inherited),
    RANK: String(rank),
    LOCAL_RANK: String(rank),
    WORLD_SIZE: String(ranks),
    LOCAL_WORLD_SIZE: String(ranks),
    GROUP_RANK: '0',
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(rendezvous.freePort),
    SHOAL_RENDEZVOUS: rendezvous.address,
    SHOAL_SECRET: rendezvous.secret,
    SHOAL_NVSHMEM_ID: rendezvous.nvshmemId,
  }
}

/**
 * Returns the device variables of one rank.
 *
 * @throws UsageError if CUDA_VISIBLE_DEVICES lacks a device of the map.
 */
function deviceVariables(
  rank: number,
  ranks: number,
  deviceMap: DeviceMap,
  inherited: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  // A value of an outer job would name one of its devices.
  const ordinal = { SHOAL_DEVICE_ORDINAL: String(rank) }
  if (inherited['SHOAL_DEVICE'] === 'sim') {
    // The software device shows all devices to all processes, and has as many as requested.
    return { ...ordinal, SHOAL_SIM_DEVICES: inherited['SHOAL_SIM_DEVICES'] || String(Math.max(ranks, 2)) }
  }
  if (deviceMap === 'rank') return ordinal
  const visible = inherited['CUDA_VISIBLE_DEVICES']
  const nameOf = (index: number): string => {
    if (visible === undefined) return String(index)
    const name = visible.split(',')[index]?.trim()
    if (name === undefined || name === '') {
      throw new UsageError(`--device-map asks for device ${index}, and CUDA_VISIBLE_DEVICES is '${visible}'`)
    }
    return name
  }
  if (deviceMap === 'each') return { SHOAL_DEVICE_ORDINAL: '0', CUDA_VISIBLE_DEVICES: nameOf(rank) }
  return { ...ordinal, CUDA_VISIBLE_DEVICES: deviceMap.map(nameOf).join(',') }
}

import { UsageError } from '../command.js'
import type { DeviceMap } from './options.js'

/** What ranks need to reach the rendezvous of their job. */
export interface RendezvousInfo {
  /** Of the rendezvous, as `bootstrap()` reads it. */
  readonly address: string
  readonly secret: string
  /** A file that no one has made yet, through which the ranks' NVSHMEM shares its id. */
  readonly nvshmemId: string
  /** A port that is free for the program's own use. */
  readonly freePort: number
}

/** A variable that only processes of this job have in their environment. */
export function jobMarker({ address }: RendezvousInfo): string {
  return `SHOAL_RENDEZVOUS=${address}`
}

/** The variables of one rank: those of torchrun, and where `bootstrap()` finds the others. */
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

/** @throws UsageError when CUDA_VISIBLE_DEVICES does not have what the map asks for. */
function deviceVariables(
  rank: number,
  ranks: number,
  deviceMap: DeviceMap,
  inherited: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  // A value from an outer job would name a device of that one.
  const ordinal = { SHOAL_DEVICE_ORDINAL: String(rank) }
  if (inherited['SHOAL_DEVICE'] === 'sim') {
    // The software device shows all processes all devices, of which there are as many as are asked for.
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

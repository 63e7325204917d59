import { CUmemLocationType } from '@shoal/cuda-sys/driver'
import { describeValue } from '@shoal/types'
import { requireInteger } from '../checks.js'
import { type Context, contextOf, type DeviceWithContext } from '../context.js'

/** Host memory of one NUMA node; `'current'` is the node of the calling thread. */
export interface HostNode {
  readonly hostNode: number | 'current'
}

/** Where physical memory is made: on a device, on the host, or on one NUMA node of the host. */
export type MemoryPlace = DeviceWithContext | 'host' | HostNode

/** Where memory lies, as plain data. */
export type MemoryLocation =
  | { readonly type: 'device'; readonly device: number }
  | { readonly type: 'host' }
  | { readonly type: 'host-node'; readonly node: number | 'current' }

/** A place as the driver takes it, and the context of its device. */
export interface ResolvedPlace {
  readonly type: CUmemLocationType
  readonly id: number
  /** Undefined for host memory. */
  readonly context: Context | undefined
}

/** A number for each place there can be, below 2^36, to look up what is known of it: a text takes longer to make. */
export function placeKey({ type, id }: ResolvedPlace): number {
  return id * 16 + type
}

const host: ResolvedPlace = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST, id: 0, context: undefined }

/** @throws TypeError for what is no place, RangeError for a node that cannot be. */
export function resolvePlace(place: MemoryPlace, name: string): ResolvedPlace {
  if (place === 'host') return host
  if (typeof place === 'object' && place !== null && 'hostNode' in place) return resolveNode(place, name)
  if (typeof place !== 'object' || place === null || !('primaryContext' in place)) {
    throw new TypeError(`${name} must be a Device, 'host' or { hostNode }, not ${describeValue(place)}`)
  }
  return resolveDevice(place, name)
}

/** The place that a device is. @throws TypeError for anything else, memory of the host included. */
export function resolveDevice(device: DeviceWithContext, name: string): ResolvedPlace & { readonly context: Context } {
  if (typeof device !== 'object' || device === null || !('primaryContext' in device)) {
    throw new TypeError(`${name} must be a Device, not ${describeValue(device)}`)
  }
  const context = contextOf(device, name)
  return { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id: context.device.ordinal, context }
}

function resolveNode({ hostNode }: HostNode, name: string): ResolvedPlace {
  if (hostNode === 'current') {
    return { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, id: 0, context: undefined }
  }
  const id = requireInteger(hostNode, `${name}.hostNode`, 0, 0x7fff_ffff)
  return { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA, id, context: undefined }
}

/** A location of the driver as data. */
export function locationOf(type: CUmemLocationType, id: number): MemoryLocation {
  switch (type) {
    case CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
      return { type: 'device', device: id }
    case CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return { type: 'host-node', node: id }
    case CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return { type: 'host-node', node: 'current' }
    default:
      return { type: 'host' }
  }
}

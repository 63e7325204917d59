import { CUmemLocationType } from '@shoal/cuda-sys/driver'
import { isPlainObject, type OptionKeys, otherCopy, requireInteger, requireOptions, wrongType } from '@shoal/types'
import { Context, contextBehind, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { Device } from '../../core/device/device.js'

/** Host memory of one NUMA node; `'current'` is the node of the calling thread. */
export interface HostNode {
  /** Number of the NUMA node; `'current'` is that of the calling thread. */
  readonly hostNode: number | 'current'
}

/** Where physical memory is made: on a device, on the host, or on one NUMA node of the host. */
export type MemoryPlace = DeviceOrContext | 'host' | HostNode

/** Where memory lies, as plain data. */
export type MemoryLocation =
  | { readonly type: 'device'; readonly deviceOrdinal: number }
  | { readonly type: 'host' }
  | { readonly type: 'host-node'; readonly node: number | 'current' }

/** A place as a `CUmemLocation`, and the context of its device. */
export interface ResolvedPlace {
  readonly type: CUmemLocationType
  readonly id: number
  /** Undefined for host memory. */
  readonly context: Context | undefined
}

/** The place that a device is. */
export interface DevicePlace extends ResolvedPlace {
  readonly context: Context
}

/** A number for each place, below 2^36: the key of caches. A text would take longer to make. */
export function placeKey({ type, id }: ResolvedPlace): number {
  return id * 16 + type
}

const host: ResolvedPlace = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST, id: 0, context: undefined }
const nodeKeys: OptionKeys<HostNode> = { hostNode: true }

/** @throws TypeError; RangeError for a node that cannot be; DisposedError for a context that is gone. */
export function resolvePlace(place: MemoryPlace, api: string, name: string): ResolvedPlace {
  if (place === 'host') return host
  const context = contextBehind(place)
  if (context !== undefined) return deviceOf(context)
  if (isPlainObject(place)) return resolveNode(requireOptions<HostNode>(place, api, nodeKeys, name), api, name)
  throw (
    otherCopy(place, api, name, Context) ?? wrongType(api, name, "a Device, a Context, 'host' or { hostNode }", place)
  )
}

/** The place that a device is. @throws TypeError for anything else, host memory included; DisposedError */
export function resolveDevice(device: DeviceOrContext, api: string, name = 'device'): DevicePlace {
  return deviceOf(contextOf(device, api, name))
}

/** The primary context of a device that the driver named. */
export function primaryContextAt(ordinal: number): Context {
  return Device.get(ordinal).primaryContext
}

function deviceOf(context: Context): DevicePlace {
  return { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id: context.device.ordinal, context }
}

function resolveNode({ hostNode }: HostNode, api: string, name: string): ResolvedPlace {
  if (hostNode === 'current') {
    return { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, id: 0, context: undefined }
  }
  const id = requireInteger(hostNode, api, `${name}.hostNode`, 0, 0x7fff_ffff)
  return { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA, id, context: undefined }
}

/** A `CUmemLocation` as data. */
export function locationOf(type: CUmemLocationType, id: number): MemoryLocation {
  switch (type) {
    case CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
      return { type: 'device', deviceOrdinal: id }
    case CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return { type: 'host-node', node: id }
    case CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return { type: 'host-node', node: 'current' }
    default:
      return { type: 'host' }
  }
}

import { CUmemLocationType } from '@shoal/cuda-sys/driver'
import { isPlainObject, type OptionKeys, otherCopy, requireInteger, requireOptions, wrongType } from '@shoal/types'
import { Context, contextBehind, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { Device } from '../../core/device/device.js'

/** Host memory of one NUMA node. */
export interface HostNode {
  /** Number of the NUMA node; `'current'` is the calling thread's node. */
  readonly hostNode: number | 'current'
}

/** Place of physical memory: a device, the host, or one NUMA node of the host. */
export type MemoryPlace = DeviceOrContext | 'host' | HostNode

/** Location of memory as plain data. */
export type MemoryLocation =
  | { readonly type: 'device'; readonly deviceOrdinal: number }
  | { readonly type: 'host' }
  | { readonly type: 'host-node'; readonly node: number | 'current' }

/** A place as a `CUmemLocation`, with its device's context. */
export interface ResolvedPlace {
  readonly type: CUmemLocationType
  readonly id: number
  /** The device's context; undefined for host memory. */
  readonly context: Context | undefined
}

/** The place of a device. */
export interface DevicePlace extends ResolvedPlace {
  readonly context: Context
}

/** Returns a unique number below 2^36 for each place, as a cache key. Creating a string would take longer. */
export function placeKey({ type, id }: ResolvedPlace): number {
  return id * 16 + type
}

const host: ResolvedPlace = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST, id: 0, context: undefined }
const nodeKeys: OptionKeys<HostNode> = { hostNode: true }

/** Resolves a place. @throws TypeError; RangeError for an invalid node; DisposedError for a context that is gone */
export function resolvePlace(place: MemoryPlace, api: string, name: string): ResolvedPlace {
  if (place === 'host') return host
  const context = contextBehind(place)
  if (context !== undefined) return deviceOf(context)
  if (isPlainObject(place)) return resolveNode(requireOptions<HostNode>(place, api, nodeKeys, name), api, name)
  throw (
    otherCopy(place, api, name, Context) ?? wrongType(api, name, "a Device, a Context, 'host' or { hostNode }", place)
  )
}

/** Resolves a device's place. @throws TypeError for other places, including host memory; DisposedError */
export function resolveDevice(device: DeviceOrContext, api: string, name = 'device'): DevicePlace {
  return deviceOf(contextOf(device, api, name))
}

/** Returns the primary context of the device with an ordinal from the driver. */
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

/** Decodes a `CUmemLocation`. */
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

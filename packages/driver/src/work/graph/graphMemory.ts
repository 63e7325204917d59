import {
  type CUdeviceptr,
  CUgraphMem_attribute,
  CUgraphNodeParams,
  cuDeviceGetGraphMemAttribute,
  cuDeviceGraphMemTrim,
  cuDeviceSetGraphMemAttribute,
} from '@shoal/cuda-sys/driver'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { codeOfType } from './nodeTypes.js'

/** Memory of a device's graphs, in bytes. */
export interface GraphMemoryUsage {
  /** Memory of launched graphs. Includes memory that a graph has freed, until {@link trimGraphMemory}. */
  readonly used: number
  /** Maximum of `used` since the last reset. */
  readonly usedHigh: number
  /** Memory that the driver keeps for graphs, used or not. */
  readonly reserved: number
  /** Maximum of `reserved` since the last reset. */
  readonly reservedHigh: number
}

const attributes = {
  used: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
  usedHigh: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
  reserved: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
  reservedHigh: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
} as const

/** Returns the memory of the device's graphs (`cuDeviceGetGraphMemAttribute`). @throws TypeError, StatusError */
export function graphMemoryUsage(owner: DeviceOrContext): GraphMemoryUsage {
  const { device } = contextOf(owner, 'graphMemoryUsage')
  const read = (attribute: CUgraphMem_attribute): number => {
    const out = scratch()
    check(cuDeviceGetGraphMemAttribute(device.handle, attribute, out), 'cuDeviceGetGraphMemAttribute')
    return Number(out.u64[0])
  }
  return {
    used: read(attributes.used),
    usedHigh: read(attributes.usedHigh),
    reserved: read(attributes.reserved),
    reservedHigh: read(attributes.reservedHigh),
  }
}

/**
 * Resets both high-water marks to the current values (`cuDeviceSetGraphMemAttribute`). @throws TypeError, StatusError
 */
export function resetGraphMemoryHigh(owner: DeviceOrContext): void {
  const { device } = contextOf(owner, 'resetGraphMemoryHigh')
  for (const attribute of [attributes.usedHigh, attributes.reservedHigh]) {
    const zero = scratch()
    zero.u64[0] = 0n
    check(cuDeviceSetGraphMemAttribute(device.handle, attribute, zero), 'cuDeviceSetGraphMemAttribute')
  }
}

/** Returns memory that no graph uses to the system (`cuDeviceGraphMemTrim`). @throws TypeError, StatusError */
export function trimGraphMemory(owner: DeviceOrContext): void {
  const { device } = contextOf(owner, 'trimGraphMemory')
  check(cuDeviceGraphMemTrim(device.handle), 'cuDeviceGraphMemTrim')
}

/** Encodes the `CUgraphNodeParams` of a node that allocates device memory. */
export function allocationParameters(deviceOrdinal: number, byteLength: number): Uint8Array {
  const location = { type: 1, id: deviceOrdinal } as const
  return CUgraphNodeParams.allocate({
    type: codeOfType('mem-alloc'),
    alloc: { poolProps: { allocType: 1, location }, bytesize: BigInt(byteLength) } as never,
  })
}

/** Encodes the `CUgraphNodeParams` of a node that frees graph memory. */
export function freeParameters(dptr: bigint): Uint8Array {
  return CUgraphNodeParams.allocate({ type: codeOfType('mem-free'), free: { dptr: dptr as CUdeviceptr } })
}

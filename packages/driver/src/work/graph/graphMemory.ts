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

/** What graphs of a device allocate, in bytes. */
export interface GraphMemoryUsage {
  /** Of graphs that were launched; memory that a graph has freed counts as well until {@link trimGraphMemory}. */
  readonly used: number
  /** The most that was used since it was reset. */
  readonly usedHigh: number
  /** What the driver keeps for graphs, used or not. */
  readonly reserved: number
  /** The most that was kept since it was reset. */
  readonly reservedHigh: number
}

const attributes = {
  used: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
  usedHigh: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
  reserved: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
  reservedHigh: CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
} as const

/** The memory of the device's graphs (`cuDeviceGetGraphMemAttribute`). @throws TypeError, StatusError */
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
 * Sets the two high-water marks back to what is in use (`cuDeviceSetGraphMemAttribute`). @throws TypeError, StatusError
 */
export function resetGraphMemoryHigh(owner: DeviceOrContext): void {
  const { device } = contextOf(owner, 'resetGraphMemoryHigh')
  for (const attribute of [attributes.usedHigh, attributes.reservedHigh]) {
    const zero = scratch()
    zero.u64[0] = 0n
    check(cuDeviceSetGraphMemAttribute(device.handle, attribute, zero), 'cuDeviceSetGraphMemAttribute')
  }
}

/** Gives memory that no graph uses back to the system (`cuDeviceGraphMemTrim`). @throws TypeError, StatusError */
export function trimGraphMemory(owner: DeviceOrContext): void {
  const { device } = contextOf(owner, 'trimGraphMemory')
  check(cuDeviceGraphMemTrim(device.handle), 'cuDeviceGraphMemTrim')
}

/** The `CUgraphNodeParams` of a node that allocates memory of a device. */
export function allocationParameters(deviceOrdinal: number, byteLength: number): Uint8Array {
  const location = { type: 1, id: deviceOrdinal } as const
  return CUgraphNodeParams.allocate({
    type: codeOfType('mem-alloc'),
    alloc: { poolProps: { allocType: 1, location }, bytesize: BigInt(byteLength) } as never,
  })
}

/** The `CUgraphNodeParams` of a node that frees memory of a graph. */
export function freeParameters(dptr: bigint): Uint8Array {
  return CUgraphNodeParams.allocate({ type: codeOfType('mem-free'), free: { dptr: dptr as CUdeviceptr } })
}

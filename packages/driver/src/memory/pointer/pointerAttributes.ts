import {
  type CUdeviceptr,
  CUpointer_attribute,
  cuPointerGetAttribute,
  cuPointerGetAttributes,
  cuPointerSetAttribute,
} from '@shoal/cuda-sys/driver'
import { requireAddress, requireBoolean, requireKeyOf, requireOneOf } from '@shoal/types'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { check, Status } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { type HandleKind, handleKindsOf } from '../handles/handleKinds.js'
import { type MemoryAccess, readAccess } from '../vmm/access.js'
import { type Reader, ResultCells, readFlag, readOrdinal, readSize, readWord, requireNames } from './resultCells.js'

/** The attributes of an address by name, `CUpointer_attribute` without its prefix, and what each is. */
export interface PointerAttributes {
  /** The `CUcontext` it was allocated in; 0n for memory that belongs to none, such as a mapping. */
  readonly CONTEXT: bigint
  readonly MEMORY_TYPE: 'device' | 'host' | 'unknown'
  /** Where the device uses it. */
  readonly DEVICE_POINTER: bigint
  /** Where the host uses it; 0n for memory that the host cannot use. */
  readonly HOST_POINTER: bigint
  /** For the kernel interface of network drivers. */
  readonly P2P_TOKENS: { readonly p2pToken: bigint; readonly vaSpaceToken: number }
  /** Whether synchronous operations on it always block. */
  readonly SYNC_MEMOPS: boolean
  /** A number that no other allocation of the process ever has. */
  readonly BUFFER_ID: bigint
  readonly IS_MANAGED: boolean
  /** -2 for unknown memory. */
  readonly DEVICE_ORDINAL: number
  /** Whether `ipcMemoryHandle` can share it. */
  readonly IS_LEGACY_CUDA_IPC_CAPABLE: boolean
  readonly RANGE_START_ADDR: bigint
  readonly RANGE_SIZE: number
  /** Whether there is memory behind the address. */
  readonly MAPPED: boolean
  /** How it may leave the process. */
  readonly ALLOWED_HANDLE_TYPES: readonly HandleKind[]
  readonly IS_GPU_DIRECT_RDMA_CAPABLE: boolean
  /** What the device that asks may do with it. */
  readonly ACCESS_FLAGS: MemoryAccess
  /** The `CUmemoryPool` it comes from; 0n for none. */
  readonly MEMPOOL_HANDLE: bigint
  readonly MAPPING_SIZE: number
  readonly MAPPING_BASE_ADDR: bigint
  /** A number that no other physical memory of the process ever has. */
  readonly MEMORY_BLOCK_ID: bigint
  readonly IS_HW_DECOMPRESS_CAPABLE: boolean
}

/** The name of one of them. */
export type PointerAttribute = keyof PointerAttributes

const memoryTypes = ['unknown', 'host', 'device'] as const

/** How the bytes of each are read. */
export const readers: { readonly [A in PointerAttribute]: Reader<PointerAttributes[A]> } = {
  CONTEXT: readWord,
  // Anything but host memory is a device's.
  MEMORY_TYPE: (view) => memoryTypes[view.getUint32(0, true)] ?? 'device',
  DEVICE_POINTER: readWord,
  HOST_POINTER: readWord,
  P2P_TOKENS: (view) => ({ p2pToken: view.getBigUint64(0, true), vaSpaceToken: view.getUint32(8, true) }),
  SYNC_MEMOPS: readFlag,
  BUFFER_ID: readWord,
  IS_MANAGED: readFlag,
  DEVICE_ORDINAL: readOrdinal,
  IS_LEGACY_CUDA_IPC_CAPABLE: readFlag,
  RANGE_START_ADDR: readWord,
  RANGE_SIZE: readSize,
  MAPPED: readFlag,
  ALLOWED_HANDLE_TYPES: (view) => handleKindsOf(view.getUint32(0, true)),
  IS_GPU_DIRECT_RDMA_CAPABLE: readFlag,
  ACCESS_FLAGS: (view) => readAccess(view.getUint32(0, true)),
  MEMPOOL_HANDLE: readWord,
  MAPPING_SIZE: readSize,
  MAPPING_BASE_ADDR: readWord,
  MEMORY_BLOCK_ID: readWord,
  IS_HW_DECOMPRESS_CAPABLE: readFlag,
}

/**
 * One attribute of an address (`cuPointerGetAttribute`). Undefined for an address CUDA does not know, and where the
 * memory there has no such attribute.
 * @throws TypeError for a name that is no attribute; StatusError
 */
export function pointerAttribute<A extends PointerAttribute>(
  owner: DeviceOrContext,
  address: bigint,
  attribute: A,
): PointerAttributes[A] | undefined {
  const api = 'pointerAttribute'
  const context = contextOf(owner, api)
  requireAddress(address, api, 'address')
  const code = pointerCode(attribute, api, 'attribute')
  const out = scratch()
  out.u64.fill(0n, 0, 2)
  const status = context.run(() => cuPointerGetAttribute(out, code, address as CUdeviceptr)) as number
  if (status === Status.invalidValue) return undefined
  check(status, 'cuPointerGetAttribute')
  return readers[attribute](new DataView(out.buffer, 0, 16))
}

/**
 * Several attributes of an address with one call (`cuPointerGetAttributes`). What the memory there does not have is
 * zero in its own way: `0n`, `false`, `'unknown'`, `-2` for a device.
 * @throws TypeError for a name that is no attribute; StatusError
 */
export function pointerAttributes<A extends PointerAttribute>(
  owner: DeviceOrContext,
  address: bigint,
  attributes: readonly A[],
): Pick<PointerAttributes, A> {
  return attributesAt(owner, address, attributes, 'pointerAttributes', 'address')
}

/** The same for another function: errors name that one and its parameter. */
export function attributesAt<A extends PointerAttribute>(
  owner: DeviceOrContext,
  address: bigint,
  attributes: readonly A[],
  api: string,
  parameter: string,
): Pick<PointerAttributes, A> {
  const context = contextOf(owner, api)
  requireAddress(address, api, parameter)
  const names = requireNames(attributes, api)
  const cells = new ResultCells(
    names.map((name) => pointerCode(name, api, 'attributes')),
    names.map(() => 16),
  )
  if (names.length > 0) {
    context._callDriver('cuPointerGetAttributes', () =>
      cuPointerGetAttributes(names.length, cells.codes, cells.pointers, address as CUdeviceptr),
    )
  }
  return cells.collect(names, readers)
}

/**
 * Sets the one attribute that can be set (`cuPointerSetAttribute`): with `SYNC_MEMOPS`, synchronous operations on the
 * allocation always block.
 * @throws TypeError, RangeError; StatusError for an address without memory of CUDA.
 */
export function setPointerAttribute(
  owner: DeviceOrContext,
  address: bigint,
  attribute: 'SYNC_MEMOPS',
  value: boolean,
): void {
  const api = 'setPointerAttribute'
  const context = contextOf(owner, api)
  requireAddress(address, api, 'address')
  requireOneOf(attribute, api, 'attribute', ['SYNC_MEMOPS'])
  const cell = scratch()
  cell.u64[0] = requireBoolean(value, api, 'value') ? 1n : 0n
  const code = pointerCode(attribute, api, 'attribute')
  context._callDriver('cuPointerSetAttribute', () => cuPointerSetAttribute(cell, code, address as CUdeviceptr))
}

function pointerCode(attribute: PointerAttribute, api: string, name: string): CUpointer_attribute {
  requireKeyOf(attribute, api, name, readers)
  return CUpointer_attribute[`CU_POINTER_ATTRIBUTE_${attribute}`]
}

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

/** Attributes of an address: names of `CUpointer_attribute` without the prefix, and their values. */
export interface PointerAttributes {
  /** The `CUcontext` of the allocation; 0n for memory without a context, such as a mapping. */
  readonly CONTEXT: bigint
  readonly MEMORY_TYPE: 'device' | 'host' | 'unknown'
  /** The address for the device. */
  readonly DEVICE_POINTER: bigint
  /** The address for the host; 0n for memory that the host cannot use. */
  readonly HOST_POINTER: bigint
  /** Tokens for the kernel interface of network drivers. */
  readonly P2P_TOKENS: { readonly p2pToken: bigint; readonly vaSpaceToken: number }
  /** Whether synchronous operations on the memory always block. */
  readonly SYNC_MEMOPS: boolean
  /** Unique number of the allocation. The process never reuses it. */
  readonly BUFFER_ID: bigint
  readonly IS_MANAGED: boolean
  /** Ordinal of the device; -2 for unknown memory. */
  readonly DEVICE_ORDINAL: number
  /** Whether `ipcMemoryHandle` can share the memory. */
  readonly IS_LEGACY_CUDA_IPC_CAPABLE: boolean
  readonly RANGE_START_ADDR: bigint
  readonly RANGE_SIZE: number
  /** Whether the address has memory. */
  readonly MAPPED: boolean
  /** Kinds of handle for exporting the memory. */
  readonly ALLOWED_HANDLE_TYPES: readonly HandleKind[]
  readonly IS_GPU_DIRECT_RDMA_CAPABLE: boolean
  /** Access of the querying device. */
  readonly ACCESS_FLAGS: MemoryAccess
  /** The `CUmemoryPool` of the memory; 0n without a pool. */
  readonly MEMPOOL_HANDLE: bigint
  readonly MAPPING_SIZE: number
  readonly MAPPING_BASE_ADDR: bigint
  /** Unique number of the physical memory. The process never reuses it. */
  readonly MEMORY_BLOCK_ID: bigint
  readonly IS_HW_DECOMPRESS_CAPABLE: boolean
}

/** Name of a pointer attribute. */
export type PointerAttribute = keyof PointerAttributes

const memoryTypes = ['unknown', 'host', 'device'] as const

/** Readers for the bytes of each attribute. */
export const readers: { readonly [A in PointerAttribute]: Reader<PointerAttributes[A]> } = {
  CONTEXT: readWord,
  // All memory except host memory belongs to a device.
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
 * Returns one attribute of an address (`cuPointerGetAttribute`). Returns undefined for an address unknown to CUDA, and
 * if its memory lacks the attribute.
 * @throws TypeError for an unknown attribute name; StatusError
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
 * Returns several attributes of an address with one call (`cuPointerGetAttributes`). An attribute that the memory lacks
 * has its zero value: `0n`, `false`, `'unknown'`, `-2` for a device.
 * @throws TypeError for an unknown attribute name; StatusError
 */
export function pointerAttributes<A extends PointerAttribute>(
  owner: DeviceOrContext,
  address: bigint,
  attributes: readonly A[],
): Pick<PointerAttributes, A> {
  return attributesAt(owner, address, attributes, 'pointerAttributes', 'address')
}

/** Like {@link pointerAttributes}. Errors name the function `api` and its parameter. */
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
 * Sets the only settable attribute, `SYNC_MEMOPS` (`cuPointerSetAttribute`). If true, synchronous operations on the
 * allocation always block.
 * @throws TypeError, RangeError; StatusError for an address without CUDA memory
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

import {
  check,
  type HandleKind,
  handleKindsOf,
  type MemoryAccess,
  optionalBoolean,
  readAccess,
  requireAddress,
  Status,
  scratch,
} from '@shoal/cuda-base'
import {
  type CUdeviceptr,
  CUmem_range_attribute,
  CUmemLocationType,
  CUpointer_attribute,
  cuDeviceGetCount,
  cuMemRangeGetAttribute,
  cuMemRangeGetAttributes,
  cuPointerGetAttribute,
  cuPointerGetAttributes,
  cuPointerSetAttribute,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { describeValue, type MemoryLike, toMemoryRange } from '@shoal/types'
import { type Context, type ContextSource, contextOf } from './context.js'

/** What CUDA knows about an address. */
export interface PointerInfo {
  /** `'host'` for page-locked memory of the host, `'unknown'` for memory CUDA does not know. */
  readonly type: 'device' | 'host' | 'unknown'
  /** Whether it is managed memory, which moves between host and devices. */
  readonly isManaged: boolean
  /** Ordinal of its device; -1 for unknown memory. */
  readonly device: number
  /** First address of the allocation it lies in; 0n for unknown memory. */
  readonly rangeStart: bigint
  /** Bytes of that allocation; 0 for unknown memory. */
  readonly rangeLength: number
}

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
  /** Whether synchronous operations on it are so in every case. */
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

/** What was advised for managed memory, by name: `CUmem_range_attribute` without its prefix. */
export interface RangeAttributes {
  readonly READ_MOSTLY: boolean
  /** Ordinal of a device, -1 for the host, -2 for none or several. */
  readonly PREFERRED_LOCATION: number
  /** Ordinals of devices; -1 stands for the host. */
  readonly ACCESSED_BY: readonly number[]
  /** Ordinal of a device, -1 for the host, -2 for none or several. */
  readonly LAST_PREFETCH_LOCATION: number
  readonly PREFERRED_LOCATION_TYPE: RangeLocationType
  readonly PREFERRED_LOCATION_ID: number
  readonly LAST_PREFETCH_LOCATION_TYPE: RangeLocationType
  readonly LAST_PREFETCH_LOCATION_ID: number
}

/** Where managed memory lies, or `'none'`. */
export type RangeLocationType = 'none' | 'device' | 'host' | 'host-node' | 'host-node-current'

/** The name of one of them. */
export type RangeAttribute = keyof RangeAttributes

type Reader<T> = (view: DataView) => T

const readFlag = (view: DataView): boolean => view.getInt32(0, true) !== 0
const readWord = (view: DataView): bigint => view.getBigUint64(0, true)
const readSize = (view: DataView): number => Number(view.getBigUint64(0, true))
const readOrdinal = (view: DataView): number => view.getInt32(0, true)

const memoryTypes = ['unknown', 'host', 'device'] as const

const readers: { readonly [A in PointerAttribute]: Reader<PointerAttributes[A]> } = {
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

const locationTypes: { readonly [type: number]: RangeLocationType } = {
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE]: 'device',
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST]: 'host',
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA]: 'host-node',
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT]: 'host-node-current',
}
const readLocationType = (view: DataView): RangeLocationType => locationTypes[view.getInt32(0, true)] ?? 'none'

/** An ordinal where there is no device. */
const noDevice = -2

const rangeReaders: { readonly [A in RangeAttribute]: Reader<RangeAttributes[A]> } = {
  READ_MOSTLY: readFlag,
  PREFERRED_LOCATION: readOrdinal,
  ACCESSED_BY: (view) =>
    Array.from({ length: view.byteLength / 4 }, (_, index) => view.getInt32(index * 4, true)).filter(
      (ordinal) => ordinal !== noDevice,
    ),
  LAST_PREFETCH_LOCATION: readOrdinal,
  PREFERRED_LOCATION_TYPE: readLocationType,
  PREFERRED_LOCATION_ID: readOrdinal,
  LAST_PREFETCH_LOCATION_TYPE: readLocationType,
  LAST_PREFETCH_LOCATION_ID: readOrdinal,
}

/** Asks what lies at an address (`cuPointerGetAttributes`). An address CUDA does not know is no error. */
export function pointerInfo(source: ContextSource, address: bigint): PointerInfo {
  const { MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL, RANGE_START_ADDR, RANGE_SIZE } = pointerAttributes(source, address, [
    'MEMORY_TYPE',
    'IS_MANAGED',
    'DEVICE_ORDINAL',
    'RANGE_START_ADDR',
    'RANGE_SIZE',
  ])
  return {
    type: MEMORY_TYPE,
    isManaged: IS_MANAGED,
    device: MEMORY_TYPE === 'unknown' ? -1 : DEVICE_ORDINAL,
    rangeStart: RANGE_START_ADDR,
    rangeLength: RANGE_SIZE,
  }
}

/**
 * One attribute of an address (`cuPointerGetAttribute`). Undefined for an address CUDA does not know, and where the
 * memory there has no such attribute.
 * @throws TypeError for a name there is not.
 */
export function pointerAttribute<A extends PointerAttribute>(
  source: ContextSource,
  address: bigint,
  attribute: A,
): PointerAttributes[A] | undefined {
  const context = contextOf(source)
  requireAddress(address, 'address')
  const code = pointerCode(attribute)
  const out = scratch()
  out.u64.fill(0n, 0, 2)
  const status = context.run(() => cuPointerGetAttribute(out, code, address as CUdeviceptr)) as number
  if (status === Status.invalidValue) return undefined
  check(status, 'cuPointerGetAttribute')
  return readers[attribute](new DataView(out.buffer, 0, 16))
}

/**
 * Several attributes of an address with one call (`cuPointerGetAttributes`). What the memory there does not have is zero
 * in its own way: `0n`, `false`, `'unknown'`, `-2` for a device.
 * @throws TypeError for a name there is not.
 */
export function pointerAttributes<A extends PointerAttribute>(
  source: ContextSource,
  address: bigint,
  attributes: readonly A[],
): Pick<PointerAttributes, A> {
  const context = contextOf(source)
  requireAddress(address, 'address')
  const names = requireNames(attributes)
  const cells = new ResultCells(
    names.map(pointerCode),
    names.map(() => 16),
  )
  if (names.length > 0) {
    context._call('cuPointerGetAttributes', () =>
      cuPointerGetAttributes(names.length, cells.codes, cells.pointers, address as CUdeviceptr),
    )
  }
  return cells.collect(names, readers)
}

/**
 * Sets the one attribute that can be set (`cuPointerSetAttribute`): with `SYNC_MEMOPS`, synchronous operations on the
 * allocation are so in every case.
 * @throws StatusError for an address without memory of CUDA.
 */
export function setPointerAttribute(
  source: ContextSource,
  address: bigint,
  attribute: 'SYNC_MEMOPS',
  value: boolean,
): void {
  const context = contextOf(source)
  requireAddress(address, 'address')
  if (attribute !== 'SYNC_MEMOPS') {
    throw new TypeError(`only SYNC_MEMOPS can be set, not ${describeValue(attribute)}`)
  }
  const cell = scratch()
  cell.u64[0] = optionalBoolean(value, 'value', true) ? 1n : 0n
  const code = pointerCode(attribute)
  context._call('cuPointerSetAttribute', () => cuPointerSetAttribute(cell, code, address as CUdeviceptr))
}

/**
 * One attribute of managed memory (`cuMemRangeGetAttribute`).
 * @throws StatusError for memory that is not managed.
 */
export function rangeAttribute<A extends RangeAttribute>(
  source: ContextSource,
  memory: MemoryLike,
  attribute: A,
): RangeAttributes[A] {
  const context = contextOf(source)
  const { address, byteLength } = toMemoryRange(memory)
  const code = rangeCode(attribute)
  const bytes = rangeBytes(attribute)
  const out = NativeMemory.allocate(bytes)
  const call = (): number => cuMemRangeGetAttribute(out, bytes, code, address as CUdeviceptr, byteLength)
  context._call('cuMemRangeGetAttribute', call)
  return rangeReaders[attribute](new DataView(out.buffer, 0, bytes))
}

/**
 * Several attributes of managed memory with one call (`cuMemRangeGetAttributes`).
 * @throws StatusError for memory that is not managed.
 */
export function rangeAttributes<A extends RangeAttribute>(
  source: ContextSource,
  memory: MemoryLike,
  attributes: readonly A[],
): Pick<RangeAttributes, A> {
  const context: Context = contextOf(source)
  const { address, byteLength } = toMemoryRange(memory)
  const names = requireNames(attributes)
  const sizes = names.map(rangeBytes)
  const cells = new ResultCells(names.map(rangeCode), sizes)
  if (names.length > 0) {
    context._call('cuMemRangeGetAttributes', () =>
      cuMemRangeGetAttributes(
        cells.pointers,
        BigUint64Array.from(sizes, BigInt),
        cells.codes,
        names.length,
        address as CUdeviceptr,
        byteLength,
      ),
    )
  }
  return cells.collect(names, rangeReaders)
}

/** A list of codes, a cell for the result of each, and the list of pointers to them. */
class ResultCells {
  readonly codes: Uint32Array
  readonly pointers: BigUint64Array
  readonly #memory: NativeMemory
  readonly #offsets: readonly number[]
  readonly #sizes: readonly number[]

  constructor(codes: readonly number[], sizes: readonly number[]) {
    let end = 0
    this.#offsets = sizes.map((size) => {
      const start = end
      end += Math.ceil(size / 16) * 16
      return start
    })
    this.#sizes = sizes
    this.#memory = NativeMemory.allocate(Math.max(end, 16))
    this.codes = Uint32Array.from(codes)
    this.pointers = BigUint64Array.from(this.#offsets, (offset) => this.#memory.address + BigInt(offset))
  }

  collect<All, A extends keyof All>(
    names: readonly A[],
    by: { readonly [Name in keyof All]: Reader<All[Name]> },
  ): Pick<All, A> {
    const { buffer } = this.#memory
    const entries = names.map((name, index) => {
      return [name, by[name](new DataView(buffer, this.#offsets[index], this.#sizes[index]))] as const
    })
    return Object.fromEntries(entries) as Pick<All, A>
  }
}

function requireNames<A>(attributes: readonly A[]): A[] {
  if (!Array.isArray(attributes)) {
    throw new TypeError(`attributes must be a list of names, not ${describeValue(attributes)}`)
  }
  return [...new Set(attributes)]
}

function pointerCode(attribute: PointerAttribute): CUpointer_attribute {
  if (typeof attribute !== 'string' || !Object.hasOwn(readers, attribute)) {
    throw new TypeError(`unknown pointer attribute ${describeValue(attribute)}`)
  }
  return CUpointer_attribute[`CU_POINTER_ATTRIBUTE_${attribute}`]
}

function rangeCode(attribute: RangeAttribute): CUmem_range_attribute {
  if (typeof attribute !== 'string' || !Object.hasOwn(rangeReaders, attribute)) {
    throw new TypeError(`unknown attribute of a range ${describeValue(attribute)}`)
  }
  return CUmem_range_attribute[`CU_MEM_RANGE_ATTRIBUTE_${attribute}`]
}

/** The list of devices has room for all of them and for the host. */
function rangeBytes(attribute: RangeAttribute): number {
  if (attribute !== 'ACCESSED_BY') return 4
  const out = scratch()
  check(cuDeviceGetCount(out), 'cuDeviceGetCount')
  return ((out.i32[0] as number) + 1) * 4
}

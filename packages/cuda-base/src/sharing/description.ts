import {
  DescriptorHandle,
  Device,
  encodeHandle,
  type IpcEventHandle,
  PhysicalMemory,
  pointerAttributes,
  scratch,
  uuidOf,
} from '@shoal/cuda-base'
import { CUmemAllocationHandleType, type CUmemoryPool } from '@shoal/cuda-sys/driver/common'
import {
  type DType,
  dtypeInfo,
  FeatureNotSupportedError,
  isDType,
  isMemoryLike,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  outOfRange,
  propertyOf,
  requireAddress,
  requireInteger,
  requireOneOf,
  requireText,
  toMemoryRange,
  toStridedRange,
  wrongType,
} from '@shoal/types'

/**
 * How memory gets from one to another: as an address in one process; by a file descriptor; by a legacy IPC handle; by a pool and a pointer
 * into it.
 */
export type SharingWay = 'process' | 'posix-fd' | 'ipc' | 'pool'

/** Memory as other threads, processes and Python read of it: JSON. A descriptor goes beside it where `way` is `posix-fd` or `pool`. */
export interface SharedDescription {
  /** Tells it from other messages. */
  readonly type: 'shared-memory'
  /** Of this description. */
  readonly version: 1
  /** How it is opened. */
  readonly way: SharingWay
  /** UUID of its device. */
  readonly deviceUuid: string
  /** Bytes from the first element to the end of the last. */
  readonly byteLength: number
  /** Where they begin in what is opened. */
  readonly byteOffset: number
  /** Bytes of what is opened by a descriptor. */
  readonly allocationBytes?: number
  /** The 64 bytes of an IPC handle or of a pool pointer, base64. */
  readonly handle?: string
  /** The address in the process `process`, in decimal. */
  readonly address?: string
  /** Id of the process in which the address means something. */
  readonly process?: number
  /** Type of the elements, where they have one. */
  readonly dtype?: DType | undefined
  /** Extents in elements, where they have a type. */
  readonly shape?: readonly number[] | undefined
  /** Steps in elements. */
  readonly strides?: readonly number[] | undefined
  /** Writing to it is an error. */
  readonly readOnly?: boolean
  /** An event after which the contents are there. */
  readonly event?: IpcEventHandle
}

/** A description, and the descriptor that goes with it. */
export interface Exported {
  readonly description: SharedDescription
  readonly handle?: DescriptorHandle
}

const ways: readonly SharingWay[] = ['process', 'posix-fd', 'ipc', 'pool']
const posixDescriptor = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
const asked = [
  'IS_MANAGED',
  'IS_LEGACY_CUDA_IPC_CAPABLE',
  'ALLOWED_HANDLE_TYPES',
  'MEMPOOL_HANDLE',
  'RANGE_START_ADDR',
  'RANGE_SIZE',
  'MAPPING_BASE_ADDR',
  'MAPPING_SIZE',
] as const

/** What is told of the memory of a device, whichever way it goes. @throws TypeError, RangeError; DisposedError; FeatureNotSupportedError */
function factsOf(memory: MemoryLike, api: string) {
  const range = rangeOf(memory, api)
  if (range.byteLength === 0) throw outOfRange(api, 'memory', 'memory of at least one byte', 0)
  if (range.deviceOrdinal < 0) throw unable(api, 'memory of the host cannot be shared by CUDA; copy it to a device')
  const { shape, strides, readOnly } = range
  const layout = range.dtype === undefined ? {} : { dtype: range.dtype, shape, strides: strides ?? undefined }
  const device = Device.get(range.deviceOrdinal)
  const description = {
    type: 'shared-memory',
    version: 1,
    deviceUuid: uuidOf(device.handle),
    byteLength: range.byteLength,
    ...layout,
    ...(readOnly === true ? { readOnly } : {}),
  } as const
  return { range, device, description }
}

/** With its layout, where it has a dtype. */
export function rangeOf(memory: MemoryLike, api: string): MemoryRange {
  const isTyped = isMemoryLike(memory) && memory[memoryProtocol]?.dtype !== undefined
  return isTyped ? toStridedRange(memory, api) : toMemoryRange(memory, api)
}

function unable(api: string, reason: string): FeatureNotSupportedError {
  return new FeatureNotSupportedError({ library: 'NVIDIA CUDA driver', api, reason })
}

/** Memory for other threads of this process. @throws as {@link exportMemory} */
export function describeInProcess(memory: MemoryLike, api: string): Exported {
  const { range, description } = factsOf(memory, api)
  return {
    description: {
      ...description,
      way: 'process',
      byteOffset: 0,
      address: String(range.address),
      process: process.pid,
    },
  }
}

/**
 * Memory for another process: by a descriptor where it was mapped, by its pool where it came from one, else by a legacy IPC handle. The
 * descriptor is the caller's to dispose of.
 * @throws TypeError, RangeError; DisposedError; FeatureNotSupportedError for memory that cannot leave its process; StatusError
 */
export function exportMemory(memory: MemoryLike, api: string): Exported {
  const { range, device, description } = factsOf(memory, api)
  const context = device.primaryContext
  const known = pointerAttributes(device, range.address, asked)
  const isDescriptor = known.ALLOWED_HANDLE_TYPES.includes('posix-fd')
  if (known.IS_MANAGED) throw unable(api, 'managed memory cannot leave its process; copy it to memory of a device')
  if (known.MEMPOOL_HANDLE !== 0n) {
    if (!isDescriptor) throw unable(api, "its pool was not made with handleTypes: 'posix-fd'")
    const out = scratch()
    context._call('memPoolExportToShareableHandle', out, known.MEMPOOL_HANDLE as CUmemoryPool, posixDescriptor, 0)
    const { deviceUuid } = description
    const handle = new DescriptorHandle(out.i32[0] as number, { content: 'pool', byteLength: 0, deviceUuid })
    try {
      const byteOffset = offsetIn(range, known.RANGE_START_ADDR, known.RANGE_SIZE, api)
      context._call('memPoolExportPointer', out, known.RANGE_START_ADDR as never)
      const pointer = encodeHandle(new Uint8Array(out.buffer, 0, 64))
      return { description: { ...description, way: 'pool', byteOffset, handle: pointer }, handle }
    } catch (error) {
      handle.dispose()
      throw error
    }
  }
  if (known.IS_LEGACY_CUDA_IPC_CAPABLE) {
    const byteOffset = offsetIn(range, known.RANGE_START_ADDR, known.RANGE_SIZE, api)
    const out = scratch()
    context._call('ipcGetMemHandle', out, range.address as never)
    const handle = encodeHandle(new Uint8Array(out.buffer, 0, 64))
    return { description: { ...description, way: 'ipc', byteOffset, handle } }
  }
  if (!isDescriptor) throw unable(api, "the memory was not made with handleTypes: 'posix-fd'")
  const { MAPPING_BASE_ADDR: base, MAPPING_SIZE: allocationBytes } = known
  const byteOffset = offsetIn(range, base, allocationBytes, api)
  const physical = PhysicalMemory.retain(device, base, allocationBytes)
  try {
    const handle = physical.export('posix-fd')
    return { description: { ...description, way: 'posix-fd', byteOffset, allocationBytes }, handle }
  } finally {
    physical.dispose()
  }
}

function offsetIn(
  range: { readonly address: bigint; readonly byteLength: number },
  start: bigint,
  byteLength: number,
  api: string,
): number {
  const offset = Number(range.address - start)
  if (offset + range.byteLength <= byteLength) return offset
  throw unable(api, 'it lies in several pieces of memory, of which each has a handle of its own; share slices of it')
}

/** A description that came from elsewhere. @throws TypeError, RangeError for what is none, or contradicts itself */
export function requireDescription(data: unknown, api: string): SharedDescription {
  const name = 'message'
  if (propertyOf(data, 'type') !== 'shared-memory') throw wrongType(api, name, 'a description of shared memory', data)
  const given = data as SharedDescription
  requireInteger(given.version, api, `${name}.version`, 1, 1)
  const way = requireOneOf<SharingWay>(given.way, api, `${name}.way`, ways)
  requireText(given.deviceUuid, api, `${name}.deviceUuid`)
  requireInteger(given.byteLength, api, `${name}.byteLength`, 1)
  requireInteger(given.byteOffset, api, `${name}.byteOffset`, 0)
  const { dtype, byteLength } = given
  if (way === 'process') {
    const { address } = given
    if (typeof address !== 'string' || !/^\d{1,20}$/.test(address)) {
      throw wrongType(api, `${name}.address`, 'an address in decimal', address)
    }
    requireAddress(BigInt(address), api, `${name}.address`)
    requireInteger(given.process, api, `${name}.process`, 0)
  } else if (way === 'posix-fd') {
    requireInteger(given.allocationBytes, api, `${name}.allocationBytes`, given.byteOffset + byteLength)
  } else requireText(given.handle, api, `${name}.handle`)
  if (dtype === undefined) return given
  if (!isDType(dtype)) throw wrongType(api, `${name}.dtype`, 'the name of a dtype', dtype)
  const answer = { version: 1, address: 0n, byteLength, deviceOrdinal: 0, context: 0n, dtype } as const
  toStridedRange({ kind: 'cuda.memory', process: process.pid, ...answer, ...pick(given) }, api, name)
  return given
}

function pick({ shape, strides, byteLength, dtype }: SharedDescription) {
  const own = shape ?? [Math.floor(byteLength / dtypeInfo(dtype as DType).bytes)]
  return { shape: own, strides }
}

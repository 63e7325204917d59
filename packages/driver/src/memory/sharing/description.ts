import { CUmemAllocationHandleType, type CUmemoryPool } from '@shoal/cuda-sys/driver'
import { takeOfThread } from '@shoal/ffi/calls'
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
  requireInteger,
  requireList,
  requireOneOf,
  requireText,
  toMemoryRange,
  toStridedRange,
  wrongType,
} from '@shoal/types'
import { Device } from '../../core/device/device.js'
import { requireUuid, uuidOf } from '../../core/device/deviceUuid.js'
import { scratch } from '../../core/native.js'
import { DescriptorHandle } from '../handles/handles.js'
import { decodeHandle, encodeHandle } from '../ipc/handleBytes.js'
import type { IpcEventHandle } from '../ipc/ipcEvent.js'
import { pointerAttributes } from '../pointer/pointerAttributes.js'
import { PhysicalMemory } from '../vmm/physicalMemory.js'

/**
 * How memory is shared: by address in one process, by file descriptor, by legacy IPC handle, or by pool and pool
 * pointer.
 */
export type SharingWay = 'process' | 'posix-fd' | 'ipc' | 'pool'

/**
 * The description of shared memory as JSON, which other processes and Python read. If `way` is `posix-fd` or `pool`,
 * descriptors accompany it.
 */
export interface SharedDescription {
  /** Identifies the message. */
  readonly type: 'shared-memory'
  /** Version of the description. */
  readonly version: 1
  /** How to open the memory. */
  readonly way: SharingWay
  /** UUID of the memory's device. */
  readonly deviceUuid: string
  /** Bytes from the first element to the end of the last. */
  readonly byteLength: number
  /** Offset of the first element in the opened memory, in bytes. */
  readonly byteOffset: number
  /** Size of the memory behind the descriptors, in bytes. */
  readonly allocationBytes?: number
  /**
   * Sizes of the pieces in bytes, in order, if the memory has several. Each piece has a descriptor. One message carries
   * 64 descriptors.
   */
  readonly pieces?: readonly number[]
  /** The 64 bytes of an IPC handle or a pool pointer, in base64. */
  readonly handle?: string
  /** The address in decimal, if `way` is `process`. Only descriptions from threads of this process have an address. */
  readonly address?: string
  /** Type of the elements, if they have one. */
  readonly dtype?: DType | undefined
  /** Extents in elements, if the elements have a type. */
  readonly shape?: readonly number[] | undefined
  /** Strides in elements. */
  readonly strides?: readonly number[] | undefined
  /** Whether writing to the memory is an error. */
  readonly readOnly?: boolean
  /** An event that completes when the contents are ready. */
  readonly event?: IpcEventHandle
}

/** Type of a message that contains only additional descriptors. */
export const furtherPieces = 'shared-memory-pieces'

/** Maximum number of descriptors per message, as sockets allow. */
export const descriptorsInMessage = 64

/**
 * The message between threads. It names a description that the sender stored in this process, and contains no address.
 */
export interface ThreadDescription {
  readonly type: 'shared-memory'
  readonly version: 1
  readonly way: 'process'
  /** Key of the stored description. It can be used once. */
  readonly offer: string
}

/** One received message. The reader closes the descriptors. */
export interface LinkMessage {
  readonly data: unknown
  readonly descriptors: readonly number[]
  /** The ways that are allowed for memory from this channel. */
  readonly ways: readonly SharingWay[]
}

/** A socket connects to other processes. Their addresses are invalid here. */
export const waysOfSocket: readonly SharingWay[] = ['posix-fd', 'ipc', 'pool']
/** Threads share addresses, so they need no other way. */
export const waysOfPort: readonly SharingWay[] = ['process']

/** A description and the owners of its descriptors. The caller disposes of them. */
export interface Exported {
  readonly description: SharedDescription
  readonly sources: readonly (DescriptorHandle | PhysicalMemory)[]
}

const posixDescriptor = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
const asked = [
  'DEVICE_ORDINAL',
  'IS_MANAGED',
  'IS_LEGACY_CUDA_IPC_CAPABLE',
  'ALLOWED_HANDLE_TYPES',
  'MEMPOOL_HANDLE',
  'RANGE_START_ADDR',
  'RANGE_SIZE',
  'MAPPING_BASE_ADDR',
  'MAPPING_SIZE',
] as const

/**
 * Returns the facts about device memory that every way needs. @throws TypeError, RangeError; DisposedError;
 * FeatureNotSupportedError
 */
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

/** Returns the memory's range, with its layout if the memory has a dtype. */
export function rangeOf(memory: MemoryLike, api: string): MemoryRange {
  const isTyped = isMemoryLike(memory) && memory[memoryProtocol]?.dtype !== undefined
  return isTyped ? toStridedRange(memory, api) : toMemoryRange(memory, api)
}

function unable(api: string, reason: string): FeatureNotSupportedError {
  return new FeatureNotSupportedError({ library: 'NVIDIA CUDA driver', api, reason })
}

/** Describes memory for other threads of this process. @throws as {@link exportMemory} */
export function describeInProcess(memory: MemoryLike, api: string): Exported {
  const { range, description } = factsOf(memory, api)
  return {
    description: {
      ...description,
      way: 'process',
      byteOffset: 0,
      address: String(range.address),
    },
    sources: [],
  }
}

/**
 * Exports memory for another process: mapped memory with a descriptor per piece, pool memory through its pool, other
 * memory with a legacy IPC handle.
 * @throws TypeError, RangeError; DisposedError; FeatureNotSupportedError for memory that cannot leave its process;
 * StatusError
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
      return { description: { ...description, way: 'pool', byteOffset, handle: pointer }, sources: [handle] }
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
    return { description: { ...description, way: 'ipc', byteOffset, handle }, sources: [] }
  }
  const sources = piecesOf(device, range, known.MAPPING_BASE_ADDR, api)
  const pieces = sources.map(({ byteLength }) => byteLength)
  const byteOffset = Number(range.address - known.MAPPING_BASE_ADDR)
  const allocationBytes = pieces.reduce((sum, bytes) => sum + bytes, 0)
  const mapped = { ...description, way: 'posix-fd', byteOffset, allocationBytes } as const
  return { description: pieces.length > 1 ? { ...mapped, pieces } : mapped, sources }
}

/** Returns the pieces of physical memory behind a range of mapped memory. `start` is the address of the first piece. */
function piecesOf(
  device: Device,
  { address, byteLength }: MemoryRange,
  start: bigint,
  api: string,
): readonly PhysicalMemory[] {
  const pieces: PhysicalMemory[] = []
  try {
    for (let at = start; at < address + BigInt(byteLength); ) {
      const known = pointerAttributes(device, at, asked)
      const { MAPPING_SIZE: bytes } = known
      if (bytes === 0 || known.MAPPING_BASE_ADDR !== at) throw unable(api, 'a part of it is not mapped')
      if (!known.ALLOWED_HANDLE_TYPES.includes('posix-fd'))
        throw unable(api, "it was not made with handleTypes: 'posix-fd'")
      const { DEVICE_ORDINAL: ordinal } = known
      if (ordinal !== device.ordinal)
        throw unable(api, `a part of it lies on device ${ordinal}; share a slice of each device`)
      pieces.push(PhysicalMemory.retain(device, at, bytes))
      at += BigInt(bytes)
    }
    return pieces
  } catch (error) {
    for (const piece of pieces) piece.dispose()
    throw error
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
  throw unable(api, 'it lies in several allocations, of which each has a handle of its own; share a slice of each')
}

/**
 * Checks a received description. Its way must be one that the channel can carry.
 * @throws TypeError, RangeError for any other message, and for a contradictory description
 */
export function requireDescription(data: unknown, ways: readonly SharingWay[], api: string): SharedDescription {
  const name = 'message'
  if (propertyOf(data, 'type') !== 'shared-memory') throw wrongType(api, name, 'a description of shared memory', data)
  const given = data as SharedDescription
  requireInteger(given.version, api, `${name}.version`, 1, 1)
  const way = requireOneOf<SharingWay>(given.way, api, `${name}.way`, ways)
  if (way === 'process') return descriptionOfThread(propertyOf(data, 'offer'), api, `${name}.offer`)
  requireUuid(given.deviceUuid, api, `${name}.deviceUuid`)
  requireInteger(given.byteLength, api, `${name}.byteLength`, 1)
  requireInteger(given.byteOffset, api, `${name}.byteOffset`, 0, Number.MAX_SAFE_INTEGER - given.byteLength)
  requireLayout(given, api, name)
  const { allocationBytes, byteOffset, byteLength, event, handle, pieces, readOnly } = given
  if (readOnly !== undefined && typeof readOnly !== 'boolean')
    throw wrongType(api, `${name}.readOnly`, 'a boolean', readOnly)
  if (event !== undefined) requireEvent(event, api, `${name}.event`)
  if (way === 'posix-fd') {
    requireInteger(allocationBytes, api, `${name}.allocationBytes`, byteOffset + byteLength)
    if (pieces !== undefined) requirePieces(pieces, allocationBytes, api, `${name}.pieces`)
  } else decodeHandle(handle, api, `${name}.handle`)
  return given
}

/** Takes the description that a thread of this process stored. It was checked when the memory was shared. */
function descriptionOfThread(key: unknown, api: string, name: string): SharedDescription {
  const text = takeOfThread(requireText(key, api, name))
  if (text !== undefined) return JSON.parse(text)
  throw outOfRange(api, name, 'the key of memory that a thread of this process shares', key)
}

function requireLayout(given: SharedDescription, api: string, name: string): void {
  const { byteLength, byteOffset, dtype, shape, strides } = given
  if (dtype === undefined) {
    if (shape === undefined && strides === undefined) return
    throw wrongType(api, `${name}.dtype`, 'the name of a dtype where there is a shape', dtype)
  }
  if (!isDType(dtype)) throw wrongType(api, `${name}.dtype`, 'the name of a dtype', dtype)
  const { bytes, alignment } = dtypeInfo(dtype)
  if (byteOffset % alignment !== 0) {
    throw outOfRange(api, `${name}.byteOffset`, `a multiple of ${alignment} for ${dtype}`, byteOffset)
  }
  const layout = { dtype, shape: shape === undefined ? [Math.floor(byteLength / bytes)] : shape, strides }
  const answer = { version: 1, address: 0n, byteLength, deviceOrdinal: 0, context: 0n, ...layout } as const
  toStridedRange({ kind: 'cuda.memory', process: process.pid, ...answer }, api, name)
}

function requireEvent(event: unknown, api: string, name: string): void {
  if (propertyOf(event, 'type') !== 'ipc-event') throw wrongType(api, name, 'the handle of an event', event)
  decodeHandle(propertyOf(event, 'handle'), api, `${name}.handle`)
}

function requirePieces(pieces: unknown, allocationBytes: unknown, api: string, name: string): void {
  const list = requireList(pieces as readonly unknown[], api, name, 'a list of sizes in bytes')
  const sizes = list.map((bytes, index) => requireInteger(bytes, api, `${name}[${index}]`, 1))
  const sum = sizes.reduce((all, bytes) => all + bytes, 0)
  if (sum !== allocationBytes) throw outOfRange(api, name, `sizes that are ${allocationBytes} bytes together`, sum)
}

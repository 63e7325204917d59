import { CUmemAllocationType, CUmemLocationType } from '@shoal/cuda-sys/driver'
import {
  CudaVersion,
  type DType,
  dtypeInfo,
  FeatureNotSupportedError,
  isPlainObject,
  type OptionKeys,
  optionalBoolean,
  propertyOf,
  requireInteger,
  wrongType,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { driverVersion } from '../../core/start.js'
import type { HandleKind } from '../handles/handleKinds.js'
import { decodeHandle, encodeHandle, handleBytes } from '../ipc/handleBytes.js'
import { type ResolvedPlace, resolvePlace } from '../vmm/location.js'

/** How a pool is made. */
export interface MemoryPoolOptions {
  /** Kinds of handle the pool can be exported as. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** The most it may hold, in bytes. Default: the driver's limit. */
  readonly maximumBytes?: number | undefined
  /**
   * Where its memory lies: on the device of the owner (default), in page-locked memory of the host, or of one NUMA node
   * of the host. The owner can use host memory, too. Other devices need `setAccess`.
   */
  readonly location?: PoolLocation | undefined
  /**
   * Whether its memory is managed: it moves to whoever uses it, and every device can use it. `location` is then where
   * it prefers to be; default: nowhere. Default of `managed`: false.
   */
  readonly managed?: boolean | undefined
}

/** Where a pool has its memory: on the device of its owner, on the host, or on one NUMA node of the host. */
export type PoolLocation = 'device' | 'host' | { readonly hostNode: number }

/** What kind of memory a pool has. */
export type PoolMemory = 'device' | 'host' | 'managed'

export const poolKeys: OptionKeys<MemoryPoolOptions> = {
  handleTypes: true,
  maximumBytes: true,
  location: true,
  managed: true,
}

/** The memory of a pool, checked and as the driver has it. */
export interface ResolvedPoolMemory {
  readonly memory: PoolMemory
  readonly allocType: CUmemAllocationType
  readonly location: { readonly type: CUmemLocationType; readonly id: number }
}

/**
 * First drivers with such pools, as `CudaVersion.value` has them. An older one would only answer that an argument is
 * wrong.
 */
const firstVersions = { managed: 13_000, host: 13_000, hostNode: 12_020 } as const
const { CU_MEM_ALLOCATION_TYPE_MANAGED: managedType, CU_MEM_ALLOCATION_TYPE_PINNED: pinnedType } = CUmemAllocationType
const nowhere = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_NONE, id: 0 } as const

/**
 * The memory that the options ask for.
 * @throws TypeError, RangeError; FeatureNotSupportedError for a driver that is too old
 */
export function resolvePoolMemory(context: Context, options: MemoryPoolOptions, api: string): ResolvedPoolMemory {
  const { handleTypes, location, managed } = options
  const isManaged = optionalBoolean(managed, api, 'managed', false)
  const place = location === undefined && isManaged ? nowhere : resolveLocation(context, location, api)
  const onDevice = place.type === CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
  const memory = isManaged ? 'managed' : onDevice ? 'device' : 'host'
  if (memory !== 'device') {
    if (handleTypes !== undefined) {
      throw wrongType(api, 'handleTypes', `left out for ${memory} memory, which is not exported`, handleTypes)
    }
    requireVersion(isManaged ? 'managed' : location === 'host' ? 'host' : 'hostNode')
  }
  const allocType = isManaged ? managedType : pinnedType
  return { memory, allocType, location: { type: place.type, id: place.id } }
}

function resolveLocation(context: Context, location: PoolLocation = 'device', api: string): ResolvedPlace {
  if (location === 'device') return resolvePlace(context, api, 'location')
  if (location !== 'host') {
    if (!isPlainObject(location)) throw wrongType(api, 'location', "'device', 'host' or { hostNode }", location)
    // Drivers make no pool on the node of the calling thread, which may move.
    if ((location.hostNode as unknown) === 'current') requireInteger('current', api, 'location.hostNode', 0, lastNode)
  }
  return resolvePlace(location, api, 'location')
}

const lastNode = 0x7fff_ffff

function requireVersion(kind: keyof typeof firstVersions): void {
  const installed = driverVersion()
  const since = CudaVersion.from(firstVersions[kind])
  if (installed.atLeast(since)) return
  throw new FeatureNotSupportedError({
    library: 'NVIDIA CUDA driver',
    api: `a MemoryPool of ${kind === 'managed' ? 'managed' : 'host'} memory`,
    reason: `it needs version ${since} or newer, and ${installed} is installed. Update the driver to use it.`,
    since: String(since),
    installed: String(installed),
  })
}

/** When a pool may hand memory that was freed on one stream to another. All are true at first. */
export interface ReusePolicy {
  /** Where the other stream waits for an event of the first. */
  readonly followEventDependencies: boolean
  /** Where the free has happened already, by chance. */
  readonly opportunistic: boolean
  /** By making the other stream wait. */
  readonly internalDependencies: boolean
}

export const reuseKeys: OptionKeys<ReusePolicy> = {
  followEventDependencies: true,
  opportunistic: true,
  internalDependencies: true,
}

/** Bytes now, and the most there have been since the last reset of the high-water mark. */
export interface PoolUsage {
  /** Bytes now. */
  readonly current: number
  /** The most since the last reset. */
  readonly high: number
}

/** One allocation of a pool on its way to another process: 64 bytes, its length and its type. JSON can carry it. */
export interface PoolPointer<D extends DType = DType> {
  /** Tells it from other handles that arrive as JSON. */
  readonly type: 'pool-pointer'
  /** The 64 bytes, base64. */
  readonly data: string
  /** The type of its elements. */
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
}

/** What a refusal to export a pointer is about. */
export const onlyItsOwn = 'the memory must be from this pool, and the pool made with handleTypes'

/** The bytes of a pool pointer. @throws TypeError, RangeError for what is none. */
export function poolPointerBytes(pointer: PoolPointer, api: string): Uint8Array {
  if (propertyOf(pointer, 'type') !== 'pool-pointer') {
    throw wrongType(api, 'pointer', 'what exportPointer() gave', pointer)
  }
  const { bytes } = dtypeInfo(pointer.dtype, api, 'pointer.dtype')
  requireInteger(pointer.length, api, 'pointer.length', 1, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
  return decodeHandle(pointer.data, api, 'pointer.data')
}

/** A pool pointer from the 64 bytes at the start of a buffer. */
export function poolPointerFrom<D extends DType>(buffer: ArrayBuffer, dtype: D, length: number): PoolPointer<D> {
  return { type: 'pool-pointer', data: encodeHandle(new Uint8Array(buffer, 0, handleBytes)), dtype, length }
}

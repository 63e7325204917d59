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

/** Options of a new memory pool. */
export interface MemoryPoolOptions {
  /** Kinds of handle for exporting the pool. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** Maximum memory of the pool in bytes. Default: the driver's limit. */
  readonly maximumBytes?: number | undefined
  /**
   * Location of the memory: the owner's device (default), page-locked host memory, or one NUMA node of the host. The
   * owner can use host memory too. Other devices need `setAccess`.
   */
  readonly location?: PoolLocation | undefined
  /**
   * Makes the memory managed: it migrates to the device or host that uses it, and every device can use it. `location`
   * is then the preferred location; by default, no location is preferred. Default of `managed`: false.
   */
  readonly managed?: boolean | undefined
}

/** Location of a pool's memory: the owner's device, the host, or one NUMA node of the host. */
export type PoolLocation = 'device' | 'host' | { readonly hostNode: number }

/** Kind of a pool's memory. */
export type PoolMemory = 'device' | 'host' | 'managed'

export const poolKeys: OptionKeys<MemoryPoolOptions> = {
  handleTypes: true,
  maximumBytes: true,
  location: true,
  managed: true,
}

/** A pool's checked memory options, encoded for the driver. */
export interface ResolvedPoolMemory {
  readonly memory: PoolMemory
  readonly allocType: CUmemAllocationType
  readonly location: { readonly type: CUmemLocationType; readonly id: number }
}

/**
 * First drivers with such pools, in the form of `CudaVersion.value`. An older driver would only report an invalid
 * argument.
 */
const firstVersions = { managed: 13_000, host: 13_000, hostNode: 12_020 } as const
const { CU_MEM_ALLOCATION_TYPE_MANAGED: managedType, CU_MEM_ALLOCATION_TYPE_PINNED: pinnedType } = CUmemAllocationType
const nowhere = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_NONE, id: 0 } as const

/**
 * Checks and encodes the memory options.
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
    // Drivers cannot create a pool on the calling thread's node, because the thread may move.
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

/** Conditions for reusing memory freed on one stream for another stream. All are true by default. */
export interface ReusePolicy {
  /** Reuses memory if the other stream waits for an event of the first stream. */
  readonly followEventDependencies: boolean
  /** Reuses memory if the free has already completed. */
  readonly opportunistic: boolean
  /** Makes the other stream wait for the free, and then reuses the memory. */
  readonly internalDependencies: boolean
}

export const reuseKeys: OptionKeys<ReusePolicy> = {
  followEventDependencies: true,
  opportunistic: true,
  internalDependencies: true,
}

/** Current bytes, and the maximum since the last reset of the high-water mark. */
export interface PoolUsage {
  /** Current number of bytes. */
  readonly current: number
  /** Maximum since the last reset. */
  readonly high: number
}

/** A pool allocation that another process can import: 64 bytes, length and element type. It can be sent as JSON. */
export interface PoolPointer<D extends DType = DType> {
  /** Identifies this kind of handle in JSON. */
  readonly type: 'pool-pointer'
  /** The 64 bytes in base64. */
  readonly data: string
  /** Type of the elements. */
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
}

/** Text of errors about refused pointer exports. */
export const onlyItsOwn = 'the memory must be from this pool, and the pool made with handleTypes'

/** Decodes the bytes of a pool pointer. @throws TypeError, RangeError for other values */
export function poolPointerBytes(pointer: PoolPointer, api: string): Uint8Array {
  if (propertyOf(pointer, 'type') !== 'pool-pointer') {
    throw wrongType(api, 'pointer', 'what exportPointer() gave', pointer)
  }
  const { bytes } = dtypeInfo(pointer.dtype, api, 'pointer.dtype')
  requireInteger(pointer.length, api, 'pointer.length', 1, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
  return decodeHandle(pointer.data, api, 'pointer.data')
}

/** Creates a pool pointer from the first 64 bytes of a buffer. */
export function poolPointerFrom<D extends DType>(buffer: ArrayBuffer, dtype: D, length: number): PoolPointer<D> {
  return { type: 'pool-pointer', data: encodeHandle(new Uint8Array(buffer, 0, handleBytes)), dtype, length }
}

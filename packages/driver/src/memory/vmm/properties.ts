import {
  CUmemAllocationGranularity_flags,
  CUmemAllocationProp,
  CUmemAllocationType,
  cuMemGetAllocationGranularity,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import {
  type OptionKeys,
  optionalBoolean,
  optionalOptions,
  outOfRange,
  requireInteger,
  requireKeyOf,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { startDriver } from '../../core/start.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { type HandleKind, handleKindBits, handleKindsOf } from '../handles/handleKinds.js'
import {
  locationOf,
  type MemoryLocation,
  type MemoryPlace,
  placeKey,
  type ResolvedPlace,
  resolvePlace,
} from './location.js'

/** Options of new physical memory. */
export interface AllocationOptions {
  /** Kinds of handle for exporting the memory. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** Lets network adapters read and write the memory (GPUDirect RDMA). Default: false. */
  readonly gpuDirectRdma?: boolean | undefined
  /** Lets the device compress the memory, if it can. Default: false. */
  readonly compressible?: boolean | undefined
}

/** Keys of {@link AllocationOptions}. */
export const allocationKeys: OptionKeys<AllocationOptions> = {
  handleTypes: true,
  gpuDirectRdma: true,
  compressible: true,
}

/** Options of new physical memory, including those for arrays. */
export interface PhysicalMemoryOptions extends AllocationOptions {
  /** The memory is for arrays that are mapped to it (`mapArrays`). Default: false. */
  readonly tilePool?: boolean | undefined
}

/** Keys of {@link PhysicalMemoryOptions}. */
export const physicalMemoryKeys: OptionKeys<PhysicalMemoryOptions> = { ...allocationKeys, tilePool: true }

/** Properties of physical memory, as the driver reports them. */
export interface AllocationProperties {
  /** Location of the memory. */
  readonly location: MemoryLocation
  /** Kinds of handle for exporting the memory. */
  readonly handleTypes: readonly HandleKind[]
  /** Whether network adapters can read and write the memory. */
  readonly gpuDirectRdma: boolean
  /** Whether the device may compress the memory. */
  readonly compressible: boolean
  /** Whether the memory is for arrays, as the driver reports it. An H200's driver (580.159.04) never reports true. */
  readonly tilePool: boolean
}

/** The smallest granularity, or the one with the best performance. */
export type Granularity = 'minimum' | 'recommended'

/** Encoded properties for the driver. */
export interface ResolvedProperties {
  readonly place: ResolvedPlace
  /** The `CUmemAllocationProp`. It is shared and must not be modified. */
  readonly memory: NativeMemory
  /** Address of the struct. */
  readonly words: U64Halves
  /** Bits of the handle kinds. */
  readonly handleTypes: number
  /** Cached granularities from the driver. */
  readonly granularities: Map<CUmemAllocationGranularity_flags, number>
}

const genericCompression = 1
const tilePoolUsage = 1

/** Cached properties. There are few different ones, and each allocation needs one. */
const propertiesByKey = new Map<number, Omit<ResolvedProperties, 'place'>>()
/** Properties of memory without options. */
const defaultProperties = new WeakMap<Context, ResolvedProperties>()

/** Whether all options are omitted. */
export function hasNoOptions({ handleTypes, gpuDirectRdma, compressible, tilePool }: PhysicalMemoryOptions): boolean {
  return (
    handleTypes === undefined && gpuDirectRdma === undefined && compressible === undefined && tilePool === undefined
  )
}

/**
 * Encodes the properties of memory at a place. The caller has checked the option keys. @throws TypeError, RangeError;
 * DisposedError
 */
export function resolveProperties(
  place: MemoryPlace,
  options: PhysicalMemoryOptions,
  api: string,
  placeName = 'place',
): ResolvedProperties {
  return propertiesAt(resolvePlace(place, api, placeName), options, api)
}

/** {@link resolveProperties} for a checked place. */
export function propertiesAt(place: ResolvedPlace, options: PhysicalMemoryOptions, api: string): ResolvedProperties {
  const { context } = place
  if (context === undefined || !hasNoOptions(options)) return findProperties(place, options, api)
  let properties = defaultProperties.get(context)
  if (properties === undefined) {
    properties = findProperties(place, options, api)
    defaultProperties.set(context, properties)
  }
  return properties
}

function findProperties(place: ResolvedPlace, options: PhysicalMemoryOptions, api: string): ResolvedProperties {
  const { type, id } = place
  const handleTypes = handleKindBits(options.handleTypes === undefined ? [] : options.handleTypes, api)
  const compressionType = optionalBoolean(options.compressible, api, 'compressible', false) ? genericCompression : 0
  const gpuDirectRDMACapable = optionalBoolean(options.gpuDirectRdma, api, 'gpuDirectRdma', false) ? 1 : 0
  const usage = optionalBoolean(options.tilePool, api, 'tilePool', false) ? tilePoolUsage : 0
  const key = (placeKey(place) * 16 + handleTypes) * 8 + usage * 4 + compressionType * 2 + gpuDirectRDMACapable
  let found = propertiesByKey.get(key)
  if (found === undefined) {
    const memory = NativeMemory.allocate(CUmemAllocationProp.size)
    memory.bytes.set(
      CUmemAllocationProp.allocate({
        type: CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: handleTypes,
        location: { type, id },
        allocFlags: { compressionType, gpuDirectRDMACapable, usage },
      }),
    )
    found = { memory, words: halvesOf(memory.address), handleTypes, granularities: new Map() }
    propertiesByKey.set(key, found)
  }
  const { memory, words, granularities } = found
  return { place, memory, words, handleTypes, granularities }
}

/** Decodes the struct. */
export function readProperties(memory: Uint8Array): AllocationProperties {
  const { location, requestedHandleTypes, allocFlags } = CUmemAllocationProp.read(memory)
  return {
    location: locationOf(location.type, location.id),
    handleTypes: handleKindsOf(requestedHandleTypes),
    gpuDirectRdma: allocFlags.gpuDirectRDMACapable !== 0,
    compressible: allocFlags.compressionType !== 0,
    tilePool: (allocFlags.usage & tilePoolUsage) !== 0,
  }
}

/** Options for querying a granularity. */
export interface GranularityOptions extends AllocationOptions {
  /** The kind of granularity. Default: `'minimum'`. */
  readonly granularity?: Granularity | undefined
}

/** Keys of {@link GranularityOptions}. */
export const granularityKeys: OptionKeys<GranularityOptions> = { ...allocationKeys, granularity: true }

/**
 * Returns the granularity for sizes and offsets of memory at a place, in bytes (`cuMemGetAllocationGranularity`).
 * @param place a device, a context, `'host'` or `{ hostNode }`
 * @throws TypeError, RangeError; StatusError when the driver has no such memory
 */
export function allocationGranularity(place: MemoryPlace, options?: GranularityOptions): number {
  return granularityAt(place, options, 'allocationGranularity')
}

/** Returns the granularity at a place. Errors name the function `api`. */
export function granularityAt(place: MemoryPlace, options: GranularityOptions | undefined, api: string): number {
  const { granularity = 'minimum', ...rest } = optionalOptions(options, api, granularityKeys)
  startDriver()
  return granularityOf(
    resolveProperties(place, rest, api),
    requireKeyOf(granularity, api, 'granularity', granularityCodes),
  )
}

/** The driver's codes. */
export const granularityCodes: { readonly [G in Granularity]: CUmemAllocationGranularity_flags } = {
  minimum: CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM,
  recommended: CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
}

/** Returns the granularity for checked properties. */
export function granularityOf({ memory, granularities }: ResolvedProperties, code = granularityCodes.minimum): number {
  let granularity = granularities.get(code)
  if (granularity === undefined) {
    granularity = granularityFor(memory, code)
    granularities.set(code, granularity)
  }
  return granularity
}

/** Returns the granularity for the driver's struct. */
export function granularityFor(memory: Uint8Array | NativeMemory, code = granularityCodes.minimum): number {
  const out = scratch()
  check(cuMemGetAllocationGranularity(out, memory, code), 'cuMemGetAllocationGranularity')
  return Number(out.u64[0])
}

/**
 * Checks a part of memory: its offset and length must be multiples of the granularity and within the memory.
 * @param byteLength undefined for the rest after the offset
 * @throws TypeError, RangeError
 */
export function requirePart(
  memoryOffset: number | undefined,
  byteLength: number | undefined,
  available: number,
  granularity: number,
  api: string,
): { readonly memoryOffset: number; readonly byteLength: number } {
  const offset = requireMultiple(memoryOffset === undefined ? 0 : memoryOffset, api, 'memoryOffset', granularity, 0)
  if (offset >= available) throw outOfRange(api, 'memoryOffset', `within the memory of ${available} bytes`, offset)
  const length = requireMultiple(
    byteLength === undefined ? available - offset : byteLength,
    api,
    'byteLength',
    granularity,
  )
  requireRoom(api, 'memoryOffset', offset, length, available, 'memory')
  return { memoryOffset: offset, byteLength: length }
}

/** Checks that a part ends within the whole. @throws RangeError */
export function requireRoom(
  api: string,
  name: string,
  offset: number,
  byteLength: number,
  available: number,
  whole: string,
): void {
  if (offset + byteLength <= available) return
  throw outOfRange(api, name, `such that ${byteLength} bytes end within the ${whole} of ${available} bytes`, offset)
}

/** Checks that a size is a multiple of the granularity. @throws TypeError; RangeError with both numbers */
export function requireMultiple(
  value: number,
  api: string,
  name: string,
  granularity: number,
  least = granularity,
): number {
  requireInteger(value, api, name, Math.min(1, least))
  if (value % granularity === 0) return value
  throw outOfRange(api, name, `a multiple of the granularity of ${granularity} bytes`, value)
}

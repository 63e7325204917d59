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

/** How physical memory is made. */
export interface AllocationOptions {
  /** Kinds of handle it can be exported as. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** Network adapters may read and write it (GPUDirect RDMA). Default: false. */
  readonly gpuDirectRdma?: boolean | undefined
  /** The device may compress it, where it can. Default: false. */
  readonly compressible?: boolean | undefined
}

/** The keys of {@link AllocationOptions}. */
export const allocationKeys: OptionKeys<AllocationOptions> = {
  handleTypes: true,
  gpuDirectRdma: true,
  compressible: true,
}

/** How physical memory is made that may be of use for arrays. */
export interface PhysicalMemoryOptions extends AllocationOptions {
  /** It is for arrays that are mapped to it (`mapArrays`). Default: false. */
  readonly tilePool?: boolean | undefined
}

/** The keys of {@link PhysicalMemoryOptions}. */
export const physicalMemoryKeys: OptionKeys<PhysicalMemoryOptions> = { ...allocationKeys, tilePool: true }

/** The properties of physical memory, as the driver has them. */
export interface AllocationProperties {
  /** Where it lies. */
  readonly location: MemoryLocation
  /** Kinds of handle it can be exported as. */
  readonly handleTypes: readonly HandleKind[]
  /** Whether network adapters may read and write it. */
  readonly gpuDirectRdma: boolean
  /** Whether the device may compress it. */
  readonly compressible: boolean
  /** Whether it is for arrays, as the driver tells; that of an H200 (580.159.04) tells it of no memory. */
  readonly tilePool: boolean
}

/** The least granularity that works, or the one that performs best. */
export type Granularity = 'minimum' | 'recommended'

/** Properties as the driver reads them. */
export interface ResolvedProperties {
  readonly place: ResolvedPlace
  /** The `CUmemAllocationProp`. It is shared: nobody writes to it. */
  readonly memory: NativeMemory
  /** Its address. */
  readonly words: U64Halves
  /** Bits of the kinds of handle. */
  readonly handleTypes: number
  /** Granularities that the driver was asked for already. */
  readonly granularities: Map<CUmemAllocationGranularity_flags, number>
}

const genericCompression = 1
const tilePoolUsage = 1

/** There are few different properties, and each allocation needs some: written once, asked about once. */
const propertiesByKey = new Map<number, Omit<ResolvedProperties, 'place'>>()
/** Those of memory without options. */
const defaultProperties = new WeakMap<Context, ResolvedProperties>()

/** Whether no option is given. */
export function hasNoOptions({ handleTypes, gpuDirectRdma, compressible, tilePool }: PhysicalMemoryOptions): boolean {
  return (
    handleTypes === undefined && gpuDirectRdma === undefined && compressible === undefined && tilePool === undefined
  )
}

/**
 * The properties of memory at a place. The keys of the options were checked. @throws TypeError, RangeError;
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

/** The same for a place that was checked. */
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

/** The struct as data. */
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

/** Whether the least granularity is asked for, or the one that performs best; and of which memory. */
export interface GranularityOptions extends AllocationOptions {
  /** Default: `'minimum'`. */
  readonly granularity?: Granularity | undefined
}

/** The keys of {@link GranularityOptions}. */
export const granularityKeys: OptionKeys<GranularityOptions> = { ...allocationKeys, granularity: true }

/**
 * Bytes that the sizes and offsets of memory at a place must be a multiple of (`cuMemGetAllocationGranularity`).
 * @param place a device, a context, `'host'` or `{ hostNode }`.
 * @throws TypeError, RangeError; StatusError when the driver has no such memory.
 */
export function allocationGranularity(place: MemoryPlace, options?: GranularityOptions): number {
  return granularityAt(place, options, 'allocationGranularity')
}

/** The same for another function, which errors name. */
export function granularityAt(place: MemoryPlace, options: GranularityOptions | undefined, api: string): number {
  const { granularity = 'minimum', ...rest } = optionalOptions(options, api, granularityKeys)
  startDriver()
  return granularityOf(
    resolveProperties(place, rest, api),
    requireKeyOf(granularity, api, 'granularity', granularityCodes),
  )
}

/** The codes of the driver. */
export const granularityCodes: { readonly [G in Granularity]: CUmemAllocationGranularity_flags } = {
  minimum: CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM,
  recommended: CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
}

/** The granularity for properties that were checked. */
export function granularityOf({ memory, granularities }: ResolvedProperties, code = granularityCodes.minimum): number {
  let granularity = granularities.get(code)
  if (granularity === undefined) {
    granularity = granularityFor(memory, code)
    granularities.set(code, granularity)
  }
  return granularity
}

/** The granularity for the struct that the driver reads or wrote. */
export function granularityFor(memory: Uint8Array | NativeMemory, code = granularityCodes.minimum): number {
  const out = scratch()
  check(cuMemGetAllocationGranularity(out, memory, code), 'cuMemGetAllocationGranularity')
  return Number(out.u64[0])
}

/**
 * A part of memory: an offset and a length that are multiples of the granularity and end within it.
 * @param byteLength undefined for all from the offset on.
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

/** @throws RangeError unless a part ends within the whole. */
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

/** A number of bytes that is a multiple of the granularity. @throws TypeError; RangeError with both numbers */
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

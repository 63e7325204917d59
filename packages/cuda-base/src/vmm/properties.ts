import {
  CUmemAllocationGranularity_flags,
  type CUmemAllocationHandleType,
  CUmemAllocationProp,
  CUmemAllocationType,
  cuMemGetAllocationGranularity,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { describeValue } from '@shoal/types'
import { optionalBoolean, requireInteger, requireOptions } from '../checks.js'
import type { Context } from '../context.js'
import { check } from '../errors.js'
import { scratch } from '../native.js'
import { startDriver } from '../start.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'
import { type HandleKind, handleKindBits, handleKindsOf } from './handleKinds.js'
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

/** The properties of physical memory, as the driver has them. */
export interface AllocationProperties {
  readonly location: MemoryLocation
  readonly handleTypes: readonly HandleKind[]
  readonly gpuDirectRdma: boolean
  readonly compressible: boolean
}

/** Which granularity: the least that works, or the one that performs best. */
export type Granularity = 'minimum' | 'recommended'

/** Properties on their way to the driver. */
export interface ResolvedProperties {
  readonly place: ResolvedPlace
  /** The struct. It is shared: nobody writes to it. */
  readonly memory: NativeMemory
  /** Its address. */
  readonly words: U64Halves
  /** Bits of the kinds of handle. */
  readonly handleTypes: number
  /** Granularities that the driver was asked for already. */
  readonly granularities: Map<CUmemAllocationGranularity_flags, number>
}

const genericCompression = 1

/** There are few different properties, and each allocation needs some: written once, asked about once. */
const known = new Map<number, Omit<ResolvedProperties, 'place'>>()
/** Those of memory that nothing special is asked for. */
const plain = new WeakMap<Context, ResolvedProperties>()

/** Whether nothing special is asked for. */
export function isPlain({ handleTypes, gpuDirectRdma, compressible }: AllocationOptions): boolean {
  return handleTypes === undefined && gpuDirectRdma === undefined && compressible === undefined
}

/** Checks place and options, and writes the struct that the driver reads. */
export function resolveProperties(
  place: MemoryPlace,
  options: AllocationOptions,
  placeName = 'place',
): ResolvedProperties {
  requireOptions(options, 'options', '{ handleTypes }')
  const resolved = resolvePlace(place, placeName)
  const { context } = resolved
  if (context === undefined || !isPlain(options)) return findProperties(resolved, options)
  let properties = plain.get(context)
  if (properties === undefined) {
    properties = findProperties(resolved, options)
    plain.set(context, properties)
  }
  return properties
}

function findProperties(place: ResolvedPlace, options: AllocationOptions): ResolvedProperties {
  const { type, id } = place
  const handleTypes = handleKindBits(options.handleTypes ?? [], 'handleTypes') as CUmemAllocationHandleType
  const compressionType = optionalBoolean(options.compressible, 'compressible', false) ? genericCompression : 0
  const gpuDirectRDMACapable = optionalBoolean(options.gpuDirectRdma, 'gpuDirectRdma', false) ? 1 : 0
  const key = (placeKey(place) * 16 + handleTypes) * 4 + compressionType * 2 + gpuDirectRDMACapable
  let found = known.get(key)
  if (found === undefined) {
    const memory = NativeMemory.allocate(CUmemAllocationProp.size)
    memory.bytes.set(
      CUmemAllocationProp.allocate({
        type: CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: handleTypes,
        location: { type, id },
        allocFlags: { compressionType, gpuDirectRDMACapable },
      }),
    )
    found = { memory, words: halvesOf(memory.address), handleTypes, granularities: new Map() }
    known.set(key, found)
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
  }
}

/**
 * Bytes that sizes and offsets of memory at this place must be a multiple of (`cuMemGetAllocationGranularity`).
 * @throws StatusError when the driver has no such memory.
 */
export function allocationGranularity(
  place: MemoryPlace,
  options: AllocationOptions & { readonly granularity?: Granularity | undefined } = {},
): number {
  requireOptions(options, 'options', '{ granularity }')
  startDriver()
  const { granularity = 'minimum', ...rest } = options
  const code = granularityCode(granularity)
  return granularityOf(resolveProperties(place, rest), code)
}

const { CU_MEM_ALLOC_GRANULARITY_MINIMUM: minimum, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED: recommended } =
  CUmemAllocationGranularity_flags

export function granularityCode(granularity: Granularity): CUmemAllocationGranularity_flags {
  if (granularity === 'minimum') return minimum
  if (granularity === 'recommended') return recommended
  throw new TypeError(`granularity must be 'minimum' or 'recommended', not ${describeValue(granularity)}`)
}

/** The granularity for properties that were checked. */
export function granularityOf(
  { memory, granularities }: ResolvedProperties,
  code: CUmemAllocationGranularity_flags = minimum,
): number {
  let granularity = granularities.get(code)
  if (granularity === undefined) {
    granularity = granularityFor(memory, code)
    granularities.set(code, granularity)
  }
  return granularity
}

/** The granularity for the struct that the driver reads or wrote. */
export function granularityFor(
  memory: Uint8Array | NativeMemory,
  code: CUmemAllocationGranularity_flags = minimum,
): number {
  const out = scratch()
  check(cuMemGetAllocationGranularity(out, memory, code), 'cuMemGetAllocationGranularity')
  return Number(out.u64[0])
}

/**
 * A part of memory: an offset and a length that are multiples of the granularity and end within it.
 * @param byteLength undefined for all from the offset on.
 */
export function requirePart(
  memoryOffset: number | undefined,
  byteLength: number | undefined,
  available: number,
  granularity: number,
): { readonly memoryOffset: number; readonly byteLength: number } {
  const offset = requireMultiple(memoryOffset ?? 0, 'memoryOffset', granularity, 0)
  if (offset >= available) {
    throw new RangeError(`memoryOffset ${offset} lies beyond the memory, which has ${available} bytes`)
  }
  const length = requireMultiple(byteLength ?? available - offset, 'byteLength', granularity)
  if (offset + length > available) {
    throw new RangeError(
      `memoryOffset ${offset} and ${length} bytes end beyond the memory, which has ${available} bytes`,
    )
  }
  return { memoryOffset: offset, byteLength: length }
}

/** A number of bytes that is a multiple of the granularity, or an error that names both. */
export function requireMultiple(value: number, name: string, granularity: number, minimumValue = granularity): number {
  requireInteger(value, name, Math.min(1, minimumValue), Number.MAX_SAFE_INTEGER)
  if (value % granularity !== 0) {
    throw new RangeError(`${name} must be a multiple of the granularity of ${granularity} bytes, not ${value}`)
  }
  return value
}

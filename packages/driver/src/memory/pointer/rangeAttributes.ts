import { type CUdeviceptr, CUmem_range_attribute, CUmemLocationType, cuDeviceGetCount } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { type MemoryLike, requireKeyOf, toMemoryRange } from '@shoal/types'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { type Reader, ResultCells, readFlag, readOrdinal, requireNames } from './resultCells.js'

/** Advice for managed memory: names of `CUmem_range_attribute` without the prefix, and their values. */
export interface RangeAttributes {
  readonly READ_MOSTLY: boolean
  /** Ordinal of a device; -1 for the host, -2 for none or several. */
  readonly PREFERRED_LOCATION: number
  /** Ordinals of devices; -1 for the host. */
  readonly ACCESSED_BY: readonly number[]
  /** Ordinal of a device; -1 for the host, -2 for none or several. */
  readonly LAST_PREFETCH_LOCATION: number
  readonly PREFERRED_LOCATION_TYPE: RangeLocationType
  readonly PREFERRED_LOCATION_ID: number
  readonly LAST_PREFETCH_LOCATION_TYPE: RangeLocationType
  readonly LAST_PREFETCH_LOCATION_ID: number
}

/** Kind of a managed memory's location, or `'none'`. */
export type RangeLocationType = 'none' | 'device' | 'host' | 'host-node' | 'host-node-current'

/** Name of a range attribute. */
export type RangeAttribute = keyof RangeAttributes

const locationTypes: { readonly [type: number]: RangeLocationType } = {
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE]: 'device',
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST]: 'host',
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA]: 'host-node',
  [CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT]: 'host-node-current',
}
const readLocationType = (view: DataView): RangeLocationType => locationTypes[view.getInt32(0, true)] ?? 'none'

/** The ordinal that means no device. */
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

/**
 * Returns one attribute of managed memory (`cuMemRangeGetAttribute`).
 * @throws TypeError for an unknown attribute name; StatusError for memory that is not managed
 */
export function rangeAttribute<A extends RangeAttribute>(
  owner: DeviceOrContext,
  memory: MemoryLike,
  attribute: A,
): RangeAttributes[A] {
  const api = 'rangeAttribute'
  const context = contextOf(owner, api)
  const { address, byteLength } = toMemoryRange(memory, api)
  const code = rangeCode(attribute, api, 'attribute')
  const bytes = rangeBytes(attribute)
  const out = NativeMemory.allocate(bytes)
  context._call('memRangeGetAttribute', out, bytes, code, address as CUdeviceptr, byteLength)
  return rangeReaders[attribute](new DataView(out.buffer, 0, bytes))
}

/**
 * Returns several attributes of managed memory with one call (`cuMemRangeGetAttributes`).
 * @throws TypeError for an unknown attribute name; StatusError for memory that is not managed
 */
export function rangeAttributes<A extends RangeAttribute>(
  owner: DeviceOrContext,
  memory: MemoryLike,
  attributes: readonly A[],
): Pick<RangeAttributes, A> {
  const api = 'rangeAttributes'
  const context = contextOf(owner, api)
  const { address, byteLength } = toMemoryRange(memory, api)
  const names = requireNames(attributes, api)
  const codes = names.map((name) => rangeCode(name, api, 'attributes'))
  const sizes = names.map(rangeBytes)
  const cells = new ResultCells(codes, sizes)
  if (names.length > 0) {
    context._call(
      'memRangeGetAttributes',
      cells.pointers,
      BigUint64Array.from(sizes, BigInt),
      cells.codes,
      names.length,
      address as CUdeviceptr,
      byteLength,
    )
  }
  return cells.collect(names, rangeReaders)
}

function rangeCode(attribute: RangeAttribute, api: string, name: string): CUmem_range_attribute {
  requireKeyOf(attribute, api, name, rangeReaders)
  return CUmem_range_attribute[`CU_MEM_RANGE_ATTRIBUTE_${attribute}`]
}

/** Returns the bytes for an attribute's value. A list of devices has room for all devices and the host. */
function rangeBytes(attribute: RangeAttribute): number {
  if (attribute !== 'ACCESSED_BY') return 4
  const out = scratch()
  check(cuDeviceGetCount(out), 'cuDeviceGetCount')
  return ((out.i32[0] as number) + 1) * 4
}

import {
  CUarrayMapInfo,
  CUarraySparseSubresourceType,
  CUmemOperationType,
  CUresourcetype,
  cuMemMapArrayAsync,
} from '@shoal/cuda-sys/driver'
import type { StructValue } from '@shoal/ffi'
import {
  isInstance,
  type OptionKeys,
  optionalBoolean,
  optionalOptions,
  outOfRange,
  requireInstance,
  requireInteger,
  requireList,
  requireOptions,
  wrongType,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { streamFor } from '../../core/stream/stream.js'
import type { QueueOptions } from '../../memory/buffers/deviceTransfers.js'
import { PhysicalMemory } from '../../memory/vmm/physicalMemory.js'
import type { ArrayRegion } from './arrayCopy.js'
import { CudaArray } from './cudaArray.js'
import { MipmappedArray } from './mipmappedArray.js'

/** A part of an array without memory, and the memory to map. */
export interface ArrayMapping {
  /** An array that was created with `sparse` or `deferredMapping`. */
  readonly array: CudaArray | MipmappedArray
  /** Memory that was created with `tilePool: true`. If omitted, the current mapping is removed. */
  readonly memory?: PhysicalMemory | undefined
  /** Offset in the memory in bytes: a multiple of the tile size (65536) or of the array's alignment. Default: 0. */
  readonly memoryOffset?: number | undefined
  /** Level of a sparse mipmapped array. Default: 0. */
  readonly level?: number | undefined
  /** Layer of a sparse array, or face (six per cubemap). Default: 0. */
  readonly layer?: number | undefined
  /** Texels of a sparse array, in whole tiles, which take memory row by row. Default: the whole level. */
  readonly region?: ArrayRegion | undefined
  /**
   * Maps all levels of a sparse mipmapped array's layer that are smaller than a tile (see `sparseProperties()`).
   * Default: false.
   */
  readonly tail?: boolean | undefined
}

const mappingKeys: OptionKeys<ArrayMapping> = {
  array: true,
  memory: true,
  memoryOffset: true,
  level: true,
  layer: true,
  region: true,
  tail: true,
}
const regionKeys: OptionKeys<ArrayRegion> = { x: true, y: true, z: true, width: true, height: true, depth: true }
const queueKeys: OptionKeys<QueueOptions> = { stream: true }
const bytesOfTile = 65536
const most = 2 ** 31 - 1

/**
 * Queues mapping memory to arrays, or removing mappings (`cuMemMapArrayAsync`).
 *
 * Sparse arrays map tiles; arrays with `deferredMapping` map memory for all texels together. Do not dispose of the
 * memory before the stream has made the mapping. Afterwards the memory exists as long as it is mapped.
 * @throws TypeError; RangeError for texels that are not whole tiles, and for memory that is too short; DisposedError;
 * StatusError, also when the device does not support such arrays (`SPARSE_CUDA_ARRAY_SUPPORTED`,
 * `DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED`)
 *
 * @example
 * const pool = PhysicalMemory.create(device, 2 ** 21, { tilePool: true })
 * const { tile } = array.sparseProperties()
 * mapArrays([{ array, memory: pool, region: { x: tile.width, width: tile.width, height: tile.height } }], { stream })
 */
export function mapArrays(mappings: readonly ArrayMapping[], options: QueueOptions = {}): void {
  const api = 'mapArrays'
  const { stream } = requireOptions(options, api, queueKeys)
  const list = requireList(mappings, api, 'mappings', 'an array of mappings')
  if (list.length === 0) throw outOfRange(api, 'mappings', 'at least one mapping', 0)
  const memory = new Uint8Array(CUarrayMapInfo.size * list.length)
  let context: Context | undefined
  let hasTail = false
  const used: { readonly handle: bigint }[] = []
  for (const [index, mapping] of list.entries()) {
    const name = `mappings[${index}]`
    const given = { ...requireOptions(mapping, api, mappingKeys, name) }
    const { array } = given
    requireArray(array, api, `${name}.array`)
    context ??= array.context
    if (array.context !== context) throw wrongType(api, `${name}.array`, 'of the same context as the others', array)
    CUarrayMapInfo.write(memory.subarray(index * CUarrayMapInfo.size), infoOf(given, api, name))
    used.push(array)
    if (given.memory !== undefined) used.push(given.memory)
    hasTail ||= given.tail === true
  }
  const owner = context as Context
  const handle = streamFor(owner, stream, api)
  // Getters of later mappings may have disposed of earlier objects.
  for (const each of used) void each.handle
  // A driver (580.159.04, H200) skips a tail that follows another mapping in the same call.
  const atOnce = hasTail ? 1 : list.length
  for (let first = 0; first < list.length; first += atOnce) {
    const part = memory.subarray(first * CUarrayMapInfo.size)
    owner._callDriver('cuMemMapArrayAsync', () => cuMemMapArrayAsync(part, atOnce, handle))
  }
}

function requireArray(array: unknown, api: string, name: string): asserts array is ArrayMapping['array'] {
  if (!isInstance(array, CudaArray) && !isInstance(array, MipmappedArray)) {
    throw wrongType(api, name, 'a CudaArray or a MipmappedArray', array)
  }
  if (array.sparse || array.deferredMapping) return
  throw outOfRange(api, name, 'one made with sparse: true or deferredMapping: true', array)
}

function infoOf(given: ArrayMapping, api: string, name: string): StructValue<CUarrayMapInfo> {
  const { array, memory, memoryOffset } = given
  const handle = array._use()
  const { subresourceType, subresource, byteLength } = partOf(given, api, name)
  const offset = memoryOffset === undefined ? 0 : requireInteger(memoryOffset, api, `${name}.memoryOffset`, 0)
  if (memory !== undefined) {
    requireInstance(memory, api, `${name}.memory`, PhysicalMemory)
    if (offset % bytesOfTile !== 0)
      throw outOfRange(api, `${name}.memoryOffset`, `a multiple of ${bytesOfTile}`, offset)
    if (offset + byteLength > memory.byteLength) {
      const expected = `such that ${byteLength} bytes end within the memory of ${memory.byteLength} bytes`
      throw outOfRange(api, `${name}.memoryOffset`, expected, offset)
    }
  }
  const isArray = isInstance(array, CudaArray)
  const { CU_RESOURCE_TYPE_ARRAY, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY } = CUresourcetype
  const { CU_MEM_OPERATION_TYPE_MAP, CU_MEM_OPERATION_TYPE_UNMAP } = CUmemOperationType
  return {
    resourceType: isArray ? CU_RESOURCE_TYPE_ARRAY : CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
    resource: isArray ? { array: handle } : { mipmap: handle },
    subresourceType,
    subresource,
    memOperationType: memory === undefined ? CU_MEM_OPERATION_TYPE_UNMAP : CU_MEM_OPERATION_TYPE_MAP,
    memHandleType: 0,
    memHandle: { memHandle: memory === undefined ? 0n : memory.handle },
    offset: BigInt(offset),
    deviceBitMask: 1 << array.device.ordinal,
    flags: 0,
  } as StructValue<CUarrayMapInfo>
}

/** Returns the part for C, and its size in bytes. */
function partOf({ array, level, layer, region, tail }: ArrayMapping, api: string, name: string) {
  const { CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL, CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL } =
    CUarraySparseSubresourceType
  if (array.deferredMapping) {
    for (const [key, value] of Object.entries({ level, layer, region, tail })) {
      if (value === undefined) continue
      throw outOfRange(api, `${name}.${key}`, 'left out for an array of deferredMapping', value)
    }
    const byteLength = array.memoryRequirements().size
    return { subresourceType: CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL, subresource: {}, byteLength }
  }
  const { tile, mipTailSize, mipTailFirstLevel, singleMipTail } = array.sparseProperties()
  const isMipmapped = isInstance(array, MipmappedArray)
  const first = isMipmapped ? array.level(0) : array
  const layers = first.dimensions === 3 ? 1 : first.layers * (first.cubemap ? 6 : 1)
  const ofLayer = layer === undefined ? 0 : requireInteger(layer, api, `${name}.layer`, 0, layers - 1)
  if (optionalBoolean(tail, api, `${name}.tail`, false)) {
    for (const [key, value] of Object.entries({ level, region })) {
      if (value !== undefined) throw outOfRange(api, `${name}.${key}`, 'left out for the tail', value)
    }
    if (mipTailSize === 0) throw outOfRange(api, `${name}.tail`, 'false: no level is smaller than a tile', true)
    if (singleMipTail && ofLayer > 0) throw outOfRange(api, `${name}.layer`, '0, as all have one tail', ofLayer)
    const miptail = { layer: ofLayer, offset: 0n, size: BigInt(mipTailSize) }
    return {
      subresourceType: CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
      subresource: { miptail },
      byteLength: mipTailSize,
    }
  }
  const ofLevel =
    level === undefined ? 0 : requireInteger(level, api, `${name}.level`, 0, isMipmapped ? array.levels - 1 : 0)
  // For an array without mipmaps, drivers report that the tail starts at level 0.
  if (isMipmapped && ofLevel >= mipTailFirstLevel) {
    throw outOfRange(
      api,
      `${name}.level`,
      `less than ${mipTailFirstLevel}: the others are mapped by tail: true`,
      ofLevel,
    )
  }
  const size = isMipmapped ? array.level(ofLevel) : array
  const given = optionalOptions<ArrayRegion>(region, api, regionKeys, `${name}.region`)
  const axis = (origin: 'x' | 'y' | 'z', extent: 'width' | 'height' | 'depth', whole: number) => {
    const { [origin]: start = 0, [extent]: length = whole - start } = given
    const path = `${name}.region`
    requireInteger(start, api, `${path}.${origin}`, 0, whole - 1)
    if (start % tile[extent] !== 0) throw outOfRange(api, `${path}.${origin}`, `a multiple of ${tile[extent]}`, start)
    requireInteger(length, api, `${path}.${extent}`, 1, Math.min(whole - start, most))
    if (length % tile[extent] !== 0 && start + length !== whole) {
      throw outOfRange(api, `${path}.${extent}`, `a multiple of ${tile[extent]}, or up to the border`, length)
    }
    return [start, length, Math.ceil(length / tile[extent])] as const
  }
  const [offsetX, extentWidth, across] = axis('x', 'width', size.width)
  const [offsetY, extentHeight, down] = axis('y', 'height', size.height)
  const [offsetZ, extentDepth, deep] = axis('z', 'depth', size.depth)
  const sparseLevel = {
    level: ofLevel,
    layer: ofLayer,
    offsetX,
    offsetY,
    offsetZ,
    extentWidth,
    extentHeight,
    extentDepth,
  }
  return {
    subresourceType: CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
    subresource: { sparseLevel },
    byteLength: across * down * deep * bytesOfTile,
  }
}

import { CUDA_RESOURCE_VIEW_DESC } from '@shoal/cuda-sys/driver'
import type { NativeMemory } from '@shoal/ffi'
import { type OptionKeys, requireInteger, requireOneOf, requireOptions, wrongType } from '@shoal/types'
import { slicesOf } from './arrayDescription.js'
import { CudaArray } from './cudaArray.js'
import { MipmappedArray } from './mipmappedArray.js'

/** Names of `CUresourceViewFormat` by code: a type and its channels, or a block compression. */
const viewFormats = [
  'same',
  ...(['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f16', 'f32'] as const).flatMap(
    (type) => [`${type}x1`, `${type}x2`, `${type}x4`] as const,
  ),
  'bc1',
  'bc2',
  'bc3',
  'bc4',
  'bc4-signed',
  'bc5',
  'bc5-signed',
  'bc6h',
  'bc6h-signed',
  'bc7',
] as const

/**
 * How a view reads texels: unchanged (`same`), as channels of a type of the same size (`f32x1`), or as compressed
 * blocks of 4 × 4 texels (`bc1`) in a `u32` array with 2 or 4 channels.
 */
export type ViewFormat = (typeof viewFormats)[number]

/** Another view of an array. */
export interface ResourceView {
  /**
   * Format of the view. Default: the array's format, such as `'f32x1'`, or `'same'` if the array's format is not in
   * this list.
   */
  readonly format?: ViewFormat | undefined
  /**
   * Width in texels. It must be the array's width, or four times that width for compressed blocks. Default: this width.
   */
  readonly width?: number | undefined
  /** Number of rows, with the rules of the width. */
  readonly height?: number | undefined
  /** Number of slices, with the rules of the width. */
  readonly depth?: number | undefined
  /** First level of a mipmapped array. Default: 0. */
  readonly firstMipmapLevel?: number | undefined
  /** Last level. Default: the array's last level. */
  readonly lastMipmapLevel?: number | undefined
  /** First layer of a layered array. Default: 0. */
  readonly firstLayer?: number | undefined
  /** Last layer. Default: the array's last layer. */
  readonly lastLayer?: number | undefined
}

/** All properties of a view. */
export type ViewDescription = { readonly [K in keyof ResourceView]-?: NonNullable<ResourceView[K]> }

const viewKeys: OptionKeys<ResourceView> = {
  format: true,
  width: true,
  height: true,
  depth: true,
  firstMipmapLevel: true,
  lastMipmapLevel: true,
  firstLayer: true,
  lastLayer: true,
}

const compressedFrom = viewFormats.indexOf('bc1')
const blockSize = 4
const mostSize = 2 ** 31 - 1

/** Encodes a `CUDA_RESOURCE_VIEW_DESC`. @throws TypeError, RangeError */
export function viewDescriptor(options: ResourceView, object: object, api: string): Uint8Array {
  const view = requireOptions(options, api, viewKeys, 'view')
  if (!(object instanceof CudaArray || object instanceof MipmappedArray)) {
    throw wrongType(api, 'view', 'left out where the texture looks into memory', view)
  }
  const array = object instanceof CudaArray ? object : object.level(0)
  const levels = object instanceof CudaArray ? 1 : object.levels
  const own = `${array.format}x${array.channels}` as ViewFormat
  const { format: given = viewFormats.includes(own) ? own : 'same' } = view
  const format = viewFormats.indexOf(requireOneOf(given, api, 'view.format', viewFormats))
  const times = format >= compressedFrom ? blockSize : 1
  const size = (name: 'width' | 'height' | 'depth', fallback: number): bigint =>
    BigInt(requireInteger(view[name] === undefined ? fallback : view[name], api, `view.${name}`, 0, mostSize))
  const within = (name: keyof ResourceView, fallback: number, least: number, most: number): number =>
    requireInteger(view[name] === undefined ? fallback : view[name], api, `view.${name}`, least, most)
  const firstLevel = within('firstMipmapLevel', 0, 0, levels - 1)
  const slices = slicesOf(array)
  const layers = array.layered ? slices : 1
  const firstLayer = within('firstLayer', 0, 0, layers - 1)
  return CUDA_RESOURCE_VIEW_DESC.allocate({
    format: format as CUDA_RESOURCE_VIEW_DESC['format'],
    width: size('width', array.width * times),
    height: size('height', array.dimensions > 1 ? array.height * times : 0),
    depth: size('depth', array.layered || array.cubemap || array.dimensions === 3 ? slices : 0),
    firstMipmapLevel: firstLevel,
    lastMipmapLevel: within('lastMipmapLevel', levels - 1, firstLevel, levels - 1),
    firstLayer,
    lastLayer: within('lastLayer', layers - 1, firstLayer, layers - 1),
  })
}

/** Decodes a `CUDA_RESOURCE_VIEW_DESC`. */
export function readView(memory: NativeMemory): ViewDescription {
  const { format, width, height, depth, firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer } =
    CUDA_RESOURCE_VIEW_DESC.read(memory)
  return {
    format: viewFormats[format] ?? 'same',
    width: Number(width),
    height: Number(height),
    depth: Number(depth),
    firstMipmapLevel,
    lastMipmapLevel,
    firstLayer,
    lastLayer,
  }
}

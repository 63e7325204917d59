import {
  CUDA_ARRAY3D_COLOR_ATTACHMENT,
  CUDA_ARRAY3D_CUBEMAP,
  CUDA_ARRAY3D_DEFERRED_MAPPING,
  CUDA_ARRAY3D_DESCRIPTOR,
  CUDA_ARRAY3D_LAYERED,
  CUDA_ARRAY3D_SPARSE,
  CUDA_ARRAY3D_SURFACE_LDST,
  CUDA_ARRAY3D_TEXTURE_GATHER,
} from '@shoal/cuda-sys/driver'
import { FeatureNotSupportedError, type OptionKeys, optionalBoolean, outOfRange, requireInteger } from '@shoal/types'
import { scratch } from '../../core/native.js'
import {
  type ArrayFormat,
  type ChannelCount,
  codeOf,
  fitsFormat,
  formatOf,
  requireTexelFormat,
  type TexelFormat,
} from './arrayFormat.js'

/** Options of a new array. Sizes are in texels. */
export interface ArrayOptions {
  /** Format of a channel. */
  readonly format: ArrayFormat
  /** Number of channels: 1, 2 or 4. Default: 1. */
  readonly channels?: ChannelCount | undefined
  /** Elements per row. */
  readonly width: number
  /** Number of rows; omitted for 1-D arrays. A cubemap's height equals its width. */
  readonly height?: number | undefined
  /** Number of slices, for 3-D arrays. */
  readonly depth?: number | undefined
  /** Number of layers (1-D or 2-D arrays) or of cubemaps, for layered arrays. */
  readonly layers?: number | undefined
  /** Makes six faces, in the order +x, -x, +y, -y, +z, -z. Default: false. */
  readonly cubemap?: boolean | undefined
  /** Lets kernels read and write the array as a surface. Default: false. */
  readonly surface?: boolean | undefined
  /** Lets kernels gather four texels (`tex2Dgather`), for 2-D arrays. Default: false. */
  readonly gather?: boolean | undefined
  /** Lets a graphics library draw into the array, for imported memory. Default: false. */
  readonly colorAttachment?: boolean | undefined
  /** Reserves addresses without memory. Memory is mapped tile by tile. Default: false. */
  readonly sparse?: boolean | undefined
  /** Reserves addresses without memory. Memory is later mapped for the whole array. Default: false. */
  readonly deferredMapping?: boolean | undefined
}

export const arrayKeys: OptionKeys<ArrayOptions> = {
  format: true,
  channels: true,
  width: true,
  height: true,
  depth: true,
  layers: true,
  cubemap: true,
  surface: true,
  gather: true,
  colorAttachment: true,
  sparse: true,
  deferredMapping: true,
}

const flags = {
  surface: CUDA_ARRAY3D_SURFACE_LDST,
  gather: CUDA_ARRAY3D_TEXTURE_GATHER,
  colorAttachment: CUDA_ARRAY3D_COLOR_ATTACHMENT,
  sparse: CUDA_ARRAY3D_SPARSE,
  deferredMapping: CUDA_ARRAY3D_DEFERRED_MAPPING,
} as const
type Flag = keyof typeof flags

/** Properties of an array. */
export interface ArrayDescription extends TexelFormat, Readonly<Record<Flag, boolean>> {
  /** Number of dimensions: 1, 2 or 3, without layers and faces. */
  readonly dimensions: 1 | 2 | 3
  /** Elements per row. */
  readonly width: number
  /** Number of rows; 1 for a 1-D array. */
  readonly height: number
  /** Number of slices; 1 unless the array is 3-D. */
  readonly depth: number
  /** Number of layers or of cubemaps; 1 unless the array is layered. */
  readonly layers: number
  /** Whether the array has layers. */
  readonly layered: boolean
  /** Whether the layers are faces of cubes. */
  readonly cubemap: boolean
}

const facesOfCube = 6
const mostTexels = 2 ** 31 - 1

/** Encodes options as a `CUDA_ARRAY3D_DESCRIPTOR` in native memory. @throws TypeError, RangeError */
export function writeDescriptor(options: ArrayOptions, api: string): CUDA_ARRAY3D_DESCRIPTOR {
  const { format, channels, width, height, depth, layers, cubemap } = options
  const texel = requireTexelFormat(format, channels, api)
  const size = (value: number | undefined, name: string): number =>
    value === undefined ? 0 : requireInteger(value, api, name, 1, mostTexels)
  requireInteger(width, api, 'width', 1, mostTexels)
  const isCubemap = optionalBoolean(cubemap, api, 'cubemap', false)
  let rows = size(height, 'height')
  let slices = size(depth, 'depth')
  const count = size(layers, 'layers')
  if (slices > 0 && (count > 0 || isCubemap)) throw outOfRange(api, 'depth', 'left out for layers and cubemaps', depth)
  if (slices > 0 && rows === 0) throw outOfRange(api, 'height', 'given where depth is', height)
  if (isCubemap && rows > 0 && rows !== width)
    throw outOfRange(api, 'height', `the width, ${width}, for a cubemap`, height)
  if (isCubemap) {
    rows = width
    slices = facesOfCube * Math.max(count, 1)
  } else if (count > 0) {
    slices = count
  }
  let bits = (count > 0 ? CUDA_ARRAY3D_LAYERED : 0) | (isCubemap ? CUDA_ARRAY3D_CUBEMAP : 0)
  for (const name of Object.keys(flags) as Flag[]) {
    if (optionalBoolean(options[name], api, name, false)) bits |= flags[name]
  }
  if (options.gather === true && (rows === 0 || (slices > 0 && count === 0))) {
    throw outOfRange(api, 'gather', 'false for what is not 2-D', true)
  }
  if (!fitsFormat(format, width, rows, slices)) {
    throw outOfRange(
      api,
      'format',
      `another one: '${format}' is for 2-D arrays, of even sizes where a plane is smaller than the picture`,
      format,
    )
  }
  return {
    Width: BigInt(width),
    Height: BigInt(rows),
    Depth: BigInt(slices),
    Format: codeOf(texel),
    NumChannels: texel.channels,
    Flags: bits,
  }
}

/**
 * Decodes the `CUDA_ARRAY3D_DESCRIPTOR` that `read` lets C write. @throws FeatureNotSupportedError for a format without
 * a name
 */
export function readDescriptor(api: string, read: (out: ReturnType<typeof scratch>) => void): ArrayDescription {
  const out = scratch()
  read(out)
  const { Width, Height, Depth, Format, NumChannels, Flags } = CUDA_ARRAY3D_DESCRIPTOR.read(out)
  const texel = formatOf(Format, NumChannels)
  if (texel === undefined) {
    const reason = `there is no word for the CUarray_format ${Format} with ${NumChannels} channels`
    throw new FeatureNotSupportedError({ library: './shared.js', api, reason })
  }
  const layered = (Flags & CUDA_ARRAY3D_LAYERED) !== 0
  const cubemap = (Flags & CUDA_ARRAY3D_CUBEMAP) !== 0
  const isVolume = Depth > 0n && !layered && !cubemap
  const has = (flag: Flag): boolean => (Flags & flags[flag]) !== 0
  return Object.freeze({
    ...texel,
    dimensions: Height === 0n ? 1 : isVolume ? 3 : 2,
    width: Number(Width),
    height: Math.max(Number(Height), 1),
    depth: isVolume ? Number(Depth) : 1,
    layers: layered ? Number(Depth) / (cubemap ? facesOfCube : 1) : 1,
    layered,
    cubemap,
    surface: has('surface'),
    gather: has('gather'),
    colorAttachment: has('colorAttachment'),
    sparse: has('sparse'),
    deferredMapping: has('deferredMapping'),
  })
}

/** Returns the number of slices, layers or faces, which `z` counts in copies. */
export function slicesOf({ depth, layers, cubemap }: ArrayDescription): number {
  return depth * layers * (cubemap ? facesOfCube : 1)
}

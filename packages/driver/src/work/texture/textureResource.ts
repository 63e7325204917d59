import { CUDA_RESOURCE_DESC, CUresourcetype } from '@shoal/cuda-sys/driver'
import type { StructValue } from '@shoal/ffi'
import {
  type DType,
  type ElementType,
  inspectLine,
  isInstance,
  isPlainObject,
  type OptionKeys,
  outOfRange,
  requireInstance,
  requireInteger,
  requireOptions,
  withJson,
  wrongType,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { scratch } from '../../core/native.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import {
  type ChannelCount,
  codeOf,
  formatOf,
  planesOf,
  requireElementFormat,
  type TexelFormat,
  texelBytes,
} from './arrayFormat.js'
import { CudaArray } from './cudaArray.js'
import { MipmappedArray } from './mipmappedArray.js'

/** Linear memory as texels, read by index without filtering. */
export interface LinearTexels<E extends ElementType = DType> {
  /** Elements of an integer type up to 32 bits, f16 or f32. */
  readonly memory: DeviceBuffer<E>
  /** Elements per texel. Default: 1. */
  readonly channels?: ChannelCount | undefined
}

/** Linear memory as rows of texels. */
export interface PitchedTexels<E extends ElementType = DType> extends LinearTexels<E> {
  /** Texels per row. */
  readonly width: number
  /** Number of rows. */
  readonly height: number
  /** Distance between rows in bytes, a multiple of the device's `TEXTURE_PITCH_ALIGNMENT`. */
  readonly pitch: number
}

/** An object that a texture can read. */
export type TextureResource = CudaArray | MipmappedArray | DeviceBuffer<DType> | LinearTexels | PitchedTexels

const pitchedKeys: OptionKeys<PitchedTexels> = { memory: true, channels: true, width: true, height: true, pitch: true }

/** The driver's description of a resource. */
export interface ResourceDescription {
  /** Kind of the resource. */
  readonly type: 'array' | 'mipmappedArray' | 'linear' | 'pitched'
  /** Handle of an array, or address of memory. */
  readonly handle: bigint
  /** Format of memory. */
  readonly format?: TexelFormat['format'] | undefined
  /** Number of channels of memory. */
  readonly channels?: number | undefined
  /** Size of linear memory in bytes. */
  readonly byteLength?: number | undefined
  /** Texels per row of pitched memory. */
  readonly width?: number | undefined
  /** Number of rows of pitched memory. */
  readonly height?: number | undefined
  /** Distance between rows of pitched memory in bytes. */
  readonly pitch?: number | undefined
}

/** A checked resource. */
export interface CheckedResource {
  readonly context: Context
  readonly texel: TexelFormat
  /** Throws if a needed object was disposed of. */
  readonly requireThere: () => void
  /** The object to keep alive. */
  readonly object: CudaArray | MipmappedArray | DeviceBuffer<ElementType>
  readonly type: ResourceDescription['type']
  readonly dimensions: number
  readonly descriptor: StructValue<CUDA_RESOURCE_DESC>
}

/** Checks a resource. @throws TypeError, RangeError, DisposedError */
export function requireResource(value: unknown, api: string): CheckedResource {
  if (isInstance(value, CudaArray)) return ofArray(value, api)
  if (isInstance(value, MipmappedArray)) return ofMipmappedArray(value)
  if (isInstance(value, DeviceBuffer)) return ofMemory({ memory: value as DeviceBuffer<DType> }, api)
  if (isPlainObject(value)) return ofMemory(requireOptions(value as PitchedTexels, api, pitchedKeys, 'resource'), api)
  throw wrongType(
    api,
    'resource',
    'a CudaArray, a MipmappedArray, a DeviceBuffer or an object such as { memory }',
    value,
  )
}

function ofArray(array: CudaArray, api: string): CheckedResource {
  if (planesOf(array.format) > 0) {
    throw wrongType(api, 'resource', 'an array of texels: plane() gives those of pictures', array.format)
  }
  return {
    context: array.context,
    texel: { format: array.format, channels: array.channels },
    requireThere: () => void array._use(),
    object: array,
    type: 'array',
    dimensions: array.dimensions,
    descriptor: { resType: CUresourcetype.CU_RESOURCE_TYPE_ARRAY, res: { array: { hArray: array._use() } } },
  }
}

function ofMipmappedArray(array: MipmappedArray): CheckedResource {
  const { format, channels, dimensions } = array.level(0)
  return {
    context: array.context,
    texel: { format, channels },
    requireThere: () => void array._use(),
    object: array,
    type: 'mipmappedArray',
    dimensions,
    descriptor: {
      resType: CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
      res: { mipmap: { hMipmappedArray: array._use() } },
    },
  }
}

function ofMemory(given: LinearTexels & Partial<PitchedTexels>, api: string): CheckedResource {
  const { memory, channels, width, height, pitch } = given
  requireInstance(memory, api, 'resource.memory', DeviceBuffer)
  const texel = requireElementFormat(memory.dtype, channels, api)
  const bytes = texelBytes(texel)
  const { address, byteLength, context } = memory
  const { device } = context
  const alignment = device.attribute('TEXTURE_ALIGNMENT')
  if (address === 0n || address % BigInt(alignment) !== 0n) {
    throw outOfRange(api, 'resource.memory', `memory at a multiple of ${alignment} bytes`, `at ${address}`)
  }
  const requireThere = (): void => void memory._use()
  const common = { context, texel, requireThere, object: memory }
  const formatCodes = { format: codeOf(texel), numChannels: texel.channels }
  if (width === undefined && height === undefined && pitch === undefined) {
    if (byteLength % bytes !== 0)
      throw outOfRange(api, 'resource.memory', `of whole texels of ${bytes} bytes`, `${byteLength} bytes`)
    return {
      ...common,
      type: 'linear',
      dimensions: 1,
      descriptor: {
        resType: CUresourcetype.CU_RESOURCE_TYPE_LINEAR,
        res: { linear: { devPtr: address, ...formatCodes, sizeInBytes: BigInt(byteLength) } },
      },
    }
  }
  const columns = requireInteger(width, api, 'resource.width', 1, 2 ** 31 - 1)
  const rows = requireInteger(height, api, 'resource.height', 1, 2 ** 31 - 1)
  const step = requireInteger(pitch, api, 'resource.pitch', columns * bytes, 2 ** 31 - 1)
  const multiple = device.attribute('TEXTURE_PITCH_ALIGNMENT')
  if (step % multiple !== 0) throw outOfRange(api, 'resource.pitch', `a multiple of ${multiple}`, step)
  const needed = (rows - 1) * step + columns * bytes
  if (needed > byteLength) throw outOfRange(api, 'resource.memory', `of at least ${needed} bytes`, byteLength)
  return {
    ...common,
    type: 'pitched',
    dimensions: 2,
    descriptor: {
      resType: CUresourcetype.CU_RESOURCE_TYPE_PITCH2D,
      res: {
        pitch2D: {
          devPtr: address,
          ...formatCodes,
          width: BigInt(columns),
          height: BigInt(rows),
          pitchInBytes: BigInt(step),
        },
      },
    },
  }
}

/** Decodes the `CUDA_RESOURCE_DESC` that `read` lets C write. */
export function readResource(read: (out: ReturnType<typeof scratch>) => void): ResourceDescription {
  const out = scratch()
  read(out)
  return withJson(resourceFrom(out))
}

function resourceFrom(out: ReturnType<typeof scratch>): ResourceDescription {
  const { resType, res } = CUDA_RESOURCE_DESC.read(out)
  if (resType === CUresourcetype.CU_RESOURCE_TYPE_ARRAY) return { type: 'array', handle: res.array.hArray }
  if (resType === CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
    return { type: 'mipmappedArray', handle: res.mipmap.hMipmappedArray }
  }
  if (resType === CUresourcetype.CU_RESOURCE_TYPE_LINEAR) {
    const { devPtr, format, numChannels, sizeInBytes } = res.linear
    const texel = formatOf(format, numChannels)
    return { type: 'linear', handle: devPtr, ...texel, byteLength: Number(sizeInBytes) }
  }
  const { devPtr, format, numChannels, width, height, pitchInBytes } = res.pitch2D
  const texel = formatOf(format, numChannels)
  return {
    type: 'pitched',
    handle: devPtr,
    ...texel,
    width: Number(width),
    height: Number(height),
    pitch: Number(pitchInBytes),
  }
}

/** Returns a resource's name for messages. */
export function describeResource({ object, type }: CheckedResource): string {
  return type === 'linear' || type === 'pitched' ? inspectLine('DeviceBuffer', { type }) : object[Symbol.toStringTag]
}

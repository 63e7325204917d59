import {
  type CUcontext,
  type CUdevice,
  cuDevicePrimaryCtxRelease,
  cuDevicePrimaryCtxRetain,
  cuTensorMapEncodeIm2col,
  cuTensorMapEncodeIm2colWide,
  cuTensorMapEncodeTiled,
  cuTensorMapReplaceAddress,
  withContext,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  type MemoryLike,
  type MemoryRange,
  outOfRange,
  PublicObject,
  requireInteger,
  requireKeyOf,
  requireMade,
  requireOptions,
} from '@shoal/types'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import type { Context } from '../../core/context/context.js'
import { check, checkRelease } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { toSpan } from '../../core/ranges/span.js'
import { requireReachable } from '../../memory/buffers/reach.js'
import {
  argumentsOf,
  type Checked,
  cornerLimits,
  type Im2colOptions,
  type Im2colWideOptions,
  im2colKeys,
  integers,
  mostBox,
  requireCommon,
  requireInner,
  requireMemory,
  requirePixels,
  spanOf,
  type TiledOptions,
  tiledKeys,
  wideKeys,
  wideModes,
} from './tensorMapOptions.js'

const mapBytes = 128
const mapAlignment = 64

/**
 * Describes the parts of a tensor for bulk copies of compute capability 9.0 and later (`CUtensorMap`).
 *
 * The map has 128 bytes, which only hardware reads. Pass it as a kernel argument of type `'tensorMap'` (in C++ `const
 * __grid_constant__ CUtensorMap`).
 *
 * @example
 * const map = TensorMap.tiled(matrix, { dimensions: [1024, 512], box: [64, 64], swizzle: '128B' })
 * module.kernel('multiply', ['tensorMap', 'ptr']).launch({ grid: 128, block: 128 }, map, out)
 */
export class TensorMap extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** The parameter type of this object. */
  readonly parameterType = 'tensorMap'
  readonly #native: NativeMemory
  /** Start of the map, a multiple of 64 bytes. */
  readonly #start: number
  #memory: MemoryLike
  #byteLength: number
  readonly #alignment: number

  private constructor(memory: MemoryLike, checked: Checked, encode: (map: bigint) => number, call: string) {
    requireMade(encode, 'TensorMap', 'TensorMap.tiled', 'function')
    super()
    const native = NativeMemory.allocate(mapBytes + mapAlignment)
    const start = Number(-native.address & BigInt(mapAlignment - 1))
    this.#native = native
    this.#start = start
    this.#memory = memory
    this.#byteLength = spanOf(checked)
    this.#alignment = checked.alignment
    inContextOf(checked.range, () => encode(native.address + BigInt(start)), call)
  }

  /**
   * Describes boxes of a tensor (`cuTensorMapEncodeTiled`).
   * @param memory device memory that contains the tensor from its start
   * @throws TypeError, RangeError, DisposedError; StatusError for options that the driver refuses
   */
  static tiled(memory: MemoryLike, options: TiledOptions): TensorMap {
    const api = 'TensorMap.tiled'
    const given = { ...requireOptions(options, api, tiledKeys) }
    const checked = requireCommon(memory, given, 1, api)
    const box = integers(given.box, 'box', checked.rank, 1, mostBox, api)
    if (checked.facts.multiple === 128 && box[0] !== 128)
      throw outOfRange(api, 'box[0]', `128 for ${checked.dtype}`, box[0])
    requireInner(checked, box[0] as number, 'box[0]', api)
    const { tensor, elementStrides, interleave, reading } = argumentsOf(checked)
    return new TensorMap(
      memory,
      checked,
      (map) => cuTensorMapEncodeTiled(map, ...tensor, Uint32Array.from(box), elementStrides, interleave, ...reading),
      'cuTensorMapEncodeTiled',
    )
  }

  /**
   * Describes images for convolutions, in 3 to 5 dimensions (`cuTensorMapEncodeIm2col`). A bulk copy reads their pixels
   * in the order in which a filter visits them.
   * @throws as {@link tiled}
   */
  static im2col(memory: MemoryLike, options: Im2colOptions): TensorMap {
    const api = 'TensorMap.im2col'
    const given = { ...requireOptions(options, api, im2colKeys) }
    const checked = requireCommon(memory, given, 3, api)
    const limit = cornerLimits[checked.rank - 3] as number
    const lower = integers(given.lowerCorner, 'lowerCorner', checked.rank - 2, -limit, limit - 1, api)
    const upper = integers(given.upperCorner, 'upperCorner', checked.rank - 2, -limit, limit - 1, api)
    const [channels, pixels] = requirePixels(checked, given, api)
    const { tensor, elementStrides, interleave, reading } = argumentsOf(checked)
    return new TensorMap(
      memory,
      checked,
      (map) =>
        cuTensorMapEncodeIm2col(
          map,
          ...tensor,
          Int32Array.from(lower),
          Int32Array.from(upper),
          channels,
          pixels,
          elementStrides,
          interleave,
          ...reading,
        ),
      'cuTensorMapEncodeIm2col',
    )
  }

  /**
   * Like {@link im2col}, but the box has only a width. For compute capability 10.0 and later
   * (`cuTensorMapEncodeIm2colWide`). @throws as {@link tiled}
   */
  static im2colWide(memory: MemoryLike, options: Im2colWideOptions): TensorMap {
    const api = 'TensorMap.im2colWide'
    const given = { ...requireOptions(options, api, wideKeys) }
    const checked = requireCommon(memory, given, 3, api)
    const limit = cornerLimits[0]
    const lower = requireInteger(given.lowerCornerWidth, api, 'lowerCornerWidth', -limit, limit - 1)
    const upper = requireInteger(given.upperCornerWidth, api, 'upperCornerWidth', -limit, limit - 1)
    const mode = requireKeyOf(given.mode === undefined ? 'w' : given.mode, api, 'mode', wideModes)
    const [channels, pixels] = requirePixels(checked, given, api)
    const { tensor, elementStrides, interleave, reading } = argumentsOf(checked)
    return new TensorMap(
      memory,
      checked,
      (map) =>
        cuTensorMapEncodeIm2colWide(
          map,
          ...tensor,
          lower,
          upper,
          channels,
          pixels,
          elementStrides,
          interleave,
          mode,
          ...reading,
        ),
      'cuTensorMapEncodeIm2colWide',
    )
  }

  /**
   * Changes the memory of the tensor for later launches (`cuTensorMapReplaceAddress`).
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  replaceAddress(memory: MemoryLike): this {
    const api = 'TensorMap.replaceAddress'
    const range = requireMemory(memory, this.#byteLength, this.#alignment, api)
    const map = this.#native.address + BigInt(this.#start)
    inContextOf(range, () => cuTensorMapReplaceAddress(map, range.address), 'cuTensorMapReplaceAddress')
    this.#memory = memory
    return this
  }

  /** The memory of the tensor. */
  get memory(): MemoryLike {
    return this.#memory
  }

  /** Returns a copy of the 128 bytes. */
  get bytes(): Uint8Array {
    return this.#native.bytes.slice(this.#start, this.#start + mapBytes)
  }

  /** @internal Writes the map as a kernel argument. @throws TypeError, DisposedError */
  _writeArgument(target: DataView, offset: number, context: Context, api: string, name: string): void {
    requireReachable(context, toSpan(this.#memory, api, name), api, `the memory of ${name}`)
    const source = this.#native.bytes.subarray(this.#start, this.#start + mapBytes)
    new Uint8Array(target.buffer, target.byteOffset + offset, mapBytes).set(source)
  }

  get [Symbol.toStringTag](): string {
    return 'TensorMap'
  }

  override [inspectKey](): string {
    return inspectLine('TensorMap', { byteLength: this.#byteLength })
  }
}

/** Calls the driver in the context of the memory's device, because it requires some current context. */
function inContextOf({ deviceOrdinal }: MemoryRange, call: () => number, name: string): void {
  driverLibrary.start()
  const device = Math.max(deviceOrdinal, 0) as CUdevice
  const out = scratch()
  check(cuDevicePrimaryCtxRetain(out, device), 'cuDevicePrimaryCtxRetain')
  try {
    check(withContext(out.u64[0] as CUcontext, call), name)
  } finally {
    checkRelease(cuDevicePrimaryCtxRelease(device), 'cuDevicePrimaryCtxRelease')
  }
}

import { PitchedBuffer as BaseBuffer, type PitchedOptions as BaseOptions, type Extent } from '@shoal/driver/memory'
import type { DTypeOfArray } from '@shoal/driver/shared'
import type { CompoundType, DType, ElementInputOf, ElementType, StorageArray, TypedArrayOf } from '@shoal/types'
import { type DeviceOption, onlyOwner, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Extent of an array in pitched memory, and its device. */
export interface PitchedOptions<E extends ElementType = ElementType> extends BaseOptions<E>, DeviceOption {}

function from<D extends DType>(
  array: TypedArrayOf<D>,
  options: PitchedOptions<D> & { readonly dtype: D },
): PitchedBuffer<D>
function from<S extends CompoundType>(
  values: ElementInputOf<S> | Uint8Array,
  options: PitchedOptions<S> & { readonly dtype: S },
): PitchedBuffer<S>
function from<A extends StorageArray>(array: A, options: PitchedOptions): PitchedBuffer<DTypeOfArray<A>>
function from(array: StorageArray, options: PitchedOptions): PitchedBuffer<ElementType> {
  const [owner, rest] = ownerAndRest(options, 'PitchedBuffer.from')
  return BaseBuffer.from(owner, array, rest as Extent & { readonly dtype: DType })
}

/**
 * Device memory in two or three dimensions, with aligned rows (`cudaMalloc3D`).
 *
 * The device reads aligned rows fastest. Copies to and from the host skip the gaps between rows.
 *
 * @example
 * using image = PitchedBuffer.allocate('f32', { width: 640, height: 480 })
 * image.copyFrom(pixels, { stream }) // a Float32Array of 640 * 480
 */
export type PitchedBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const PitchedBuffer = withFactories(BaseBuffer, {
  /** Allocates uninitialized rows on the current or the given device. */
  allocate<E extends ElementType>(dtype: E, extent: Extent, options: DeviceOption = {}): PitchedBuffer<E> {
    return BaseBuffer.allocate(onlyOwner(options, 'PitchedBuffer.allocate'), dtype, extent)
  },

  /** Allocates rows of zeroes. Any stream can use them immediately. */
  zeros<E extends ElementType>(dtype: E, extent: Extent, options: DeviceOption = {}): PitchedBuffer<E> {
    return BaseBuffer.zeros(onlyOwner(options, 'PitchedBuffer.zeros'), dtype, extent)
  },

  /** Allocates memory and fills it from an array, row after row. Any stream can use the memory immediately. */
  from,
})

import { PitchedBuffer as BaseBuffer, type PitchedOptions as BaseOptions, type Extent } from '@shoal/driver/memory'
import type { DTypeOfArray } from '@shoal/driver/shared'
import type { CompoundType, DType, ElementInputOf, ElementType, StorageArray, TypedArrayOf } from '@shoal/types'
import { type DeviceOption, onlyOwner, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How many elements an array has for pitched memory, and where it is made. */
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
 * Memory of a device for rows in two or three dimensions, each of which begins where the device reads it best
 * (`cudaMalloc3D`). Copies to and from the host leave the gaps between rows out.
 */
export type PitchedBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const PitchedBuffer = withFactories(BaseBuffer, {
  /** Memory for rows on the current device, or the one named, with whatever was there before. */
  allocate<E extends ElementType>(dtype: E, extent: Extent, options: DeviceOption = {}): PitchedBuffer<E> {
    return BaseBuffer.allocate(onlyOwner(options, 'PitchedBuffer.allocate'), dtype, extent)
  },

  /** Memory for rows, all bits zero; ready for use on any stream. */
  zeros<E extends ElementType>(dtype: E, extent: Extent, options: DeviceOption = {}): PitchedBuffer<E> {
    return BaseBuffer.zeros(onlyOwner(options, 'PitchedBuffer.zeros'), dtype, extent)
  },

  /** A copy of an array of all elements, row after row; ready for use on any stream. */
  from,
})

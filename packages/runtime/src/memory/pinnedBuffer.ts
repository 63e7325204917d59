import { PinnedBuffer as BaseBuffer, type PinnedOptions as BaseOptions, type DTypeOfArray } from '@shoal/driver/shared'
import type { CompoundType, DType, ElementInputOf, ElementType, StorageArray, TypedArrayOf } from '@shoal/types'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of page-locked memory. */
export interface PinnedOptions extends BaseOptions, DeviceOption {}

function from<D extends DType>(array: TypedArrayOf<D>, options: PinnedOptions & { readonly dtype: D }): PinnedBuffer<D>
function from<S extends CompoundType>(
  values: ElementInputOf<S> | Uint8Array,
  options: PinnedOptions & { readonly dtype: S },
): PinnedBuffer<S>
function from<A extends StorageArray>(array: A, options?: PinnedOptions): PinnedBuffer<DTypeOfArray<A>>
function from(
  array: StorageArray,
  options: PinnedOptions & { readonly dtype?: ElementType } = {},
): PinnedBuffer<ElementType> {
  const [owner, rest] = ownerAndRest(options, 'PinnedBuffer.from')
  return BaseBuffer.from(owner, array, rest as BaseOptions & { readonly dtype: DType })
}

/**
 * Page-locked host memory (`cudaHostAlloc`) as an `ArrayBuffer`.
 *
 * Copies between this memory and the device do not block the thread and need no staging. dispose() detaches the
 * `ArrayBuffer`, so its arrays become empty.
 *
 * @example
 * using staging = PinnedBuffer.allocate('f32', 1024)
 * staging.array.fill(1)
 * buffer.copyFrom(staging, { stream }) // returns immediately
 */
export type PinnedBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const PinnedBuffer = withFactories(BaseBuffer, {
  /** Allocates uninitialized page-locked memory for `length` elements. */
  allocate<E extends ElementType>(dtype: E, length: number, options: PinnedOptions = {}): PinnedBuffer<E> {
    const [owner, rest] = ownerAndRest(options, 'PinnedBuffer.allocate')
    return BaseBuffer.allocate(owner, dtype, length, rest)
  },

  /**
   * Copies an array to page-locked memory. `dtype` is the type of the elements that the array's bits represent.
   * Default: the array's own type.
   */
  from,
})

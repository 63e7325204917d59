import {
  type BorrowOptions as BaseBorrowOptions,
  DeviceBuffer as BaseBuffer,
  type ViewOptions as BaseViewOptions,
  type DTypeOfArray,
  type Stream,
} from '@shoal/driver/shared'
import {
  type CompoundType,
  type DType,
  type ElementInputOf,
  type ElementType,
  isPlainObject,
  type MemoryLike,
  type StorageArray,
  type TypedArrayOf,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import { type DeviceOption, deviceOrCurrent, onlyOwner, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Which part of another object's memory, and whose work shall use it: by default that of the device it lies on. */
export interface ViewOptions extends BaseViewOptions, DeviceOption {}

/** Memory of somebody else, as elements. */
export interface BorrowOptions extends BaseBorrowOptions, DeviceOption {}

function from<D extends DType>(array: TypedArrayOf<D>, options: DeviceOption & { readonly dtype: D }): DeviceBuffer<D>
function from<S extends CompoundType>(
  values: ElementInputOf<S> | Uint8Array,
  options: DeviceOption & { readonly dtype: S },
): DeviceBuffer<S>
function from<A extends StorageArray>(array: A, options?: DeviceOption): DeviceBuffer<DTypeOfArray<A>>
function from(
  array: StorageArray,
  options: DeviceOption & { readonly dtype?: ElementType } = {},
): DeviceBuffer<ElementType> {
  const [owner, rest] = ownerAndRest(options, 'DeviceBuffer.from')
  return BaseBuffer.from(owner, array, rest as { readonly dtype: DType })
}

/**
 * Typed linear memory of a device, or a view of a part of it. Work named with a stream is only queued; methods that end
 * in `Sync` block the thread; methods that return a promise wait without blocking it.
 */
export type DeviceBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const DeviceBuffer = withFactories(BaseBuffer, {
  /** Memory for `length` elements on the current device, with whatever was there before (`cudaMalloc`). */
  allocate<E extends ElementType>(dtype: E, length: number, options: DeviceOption = {}): DeviceBuffer<E> {
    return BaseBuffer.allocate(onlyOwner(options, 'DeviceBuffer.allocate'), dtype, length)
  },

  /** Memory for `length` elements, all bits zero; ready for use on any stream. */
  zeros<E extends ElementType>(dtype: E, length: number, options: DeviceOption = {}): DeviceBuffer<E> {
    return BaseBuffer.zeros(onlyOwner(options, 'DeviceBuffer.zeros'), dtype, length)
  },

  /**
   * A copy of an array on the current device; ready for use on any stream. `dtype` says what the bits of the array
   * mean, such as `'bf16'` for a `Uint16Array`, or which struct the objects of a list are; default: the array's own
   * type.
   */
  from,

  /**
   * Memory that can be used by work queued on `stream` from now on, and is freed on it (`cudaMallocAsync`). Work of
   * another stream must wait for an event of this one first.
   */
  allocateOn<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E> {
    return BaseBuffer.allocateOn(stream, dtype, length)
  },

  /**
   * Memory that somebody else frees. Nothing can check the address: a wrong one loses the device's context, or the
   * process.
   */
  fromAddress<E extends ElementType>(
    address: bigint,
    dtype: E,
    length: number,
    options: BorrowOptions = {},
  ): DeviceBuffer<E> {
    const [owner, rest] = ownerAndRest(options, 'DeviceBuffer.fromAddress')
    return BaseBuffer.fromAddress(owner, address, dtype, length, rest)
  },

  /**
   * The memory of another object as elements, without a copy: a buffer of `@shoal/driver`, a `MappedRange`, anything
   * with the memory protocol. It can be used as long as that object has the memory: afterwards its use throws
   * `DisposedError`. @throws RangeError when the elements do not lie within the memory.
   */
  view<E extends ElementType>(memory: MemoryLike, dtype: E, options: ViewOptions = {}): DeviceBuffer<E> {
    const api = 'DeviceBuffer.view'
    const { deviceOrdinal } = toMemoryRange(memory, api)
    if (!isPlainObject(options)) throw wrongType(api, 'options', 'a plain object such as { device }', options)
    const { device = deviceOrdinal < 0 ? undefined : deviceOrdinal, ...rest } = options
    const owner = deviceOrCurrent(device, api)
    return BaseBuffer.view(owner, memory, dtype, rest)
  },
})

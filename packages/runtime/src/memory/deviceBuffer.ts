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

/** Range of another object's memory, and the device whose work uses it. Default: the device of the memory. */
export interface ViewOptions extends BaseViewOptions, DeviceOption {}

/** Options for memory of another owner. */
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
 * Typed linear device memory, or a view of a part of it.
 *
 * Work with a stream is only queued. Methods that end in `Sync` block the thread. Methods that return a promise wait
 * without blocking the thread.
 *
 * @example
 * using x = DeviceBuffer.from(new Float32Array([1, 2, 3])) // on the current device
 * x.fill(4, { stream }) // returns immediately
 * console.log(await x.toArray({ stream })) // Float32Array [4, 4, 4]
 */
export type DeviceBuffer<E extends ElementType = DType> = BaseBuffer<E>
export const DeviceBuffer = withFactories(BaseBuffer, {
  /** Allocates uninitialized memory for `length` elements on the current device (`cudaMalloc`). */
  allocate<E extends ElementType>(dtype: E, length: number, options: DeviceOption = {}): DeviceBuffer<E> {
    return BaseBuffer.allocate(onlyOwner(options, 'DeviceBuffer.allocate'), dtype, length)
  },

  /** Allocates zeroed memory for `length` elements. Any stream can use it immediately. */
  zeros<E extends ElementType>(dtype: E, length: number, options: DeviceOption = {}): DeviceBuffer<E> {
    return BaseBuffer.zeros(onlyOwner(options, 'DeviceBuffer.zeros'), dtype, length)
  },

  /**
   * Copies an array to the current device. Any stream can use the memory immediately.
   *
   * `dtype` is the type of the elements that the array's bits represent, such as `'bf16'` for a `Uint16Array`, or the
   * struct of the objects in a list. Default: the array's own type.
   *
   * @example
   * using weights = DeviceBuffer.from(new Uint16Array(1024), { dtype: 'bf16', device: 1 })
   */
  from,

  /**
   * Allocates memory in stream order, and later frees it on `stream` (`cudaMallocAsync`).
   *
   * Work queued on `stream` afterwards can use it. Work of another stream must first wait for an event of `stream`.
   */
  allocateOn<E extends ElementType>(stream: Stream, dtype: E, length: number): DeviceBuffer<E> {
    return BaseBuffer.allocateOn(stream, dtype, length)
  },

  /**
   * Wraps memory of another owner, without freeing it.
   *
   * The address cannot be checked: a wrong address ends the device's context or the process.
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
   * Returns the memory of another object as elements, without a copy.
   *
   * Accepts a buffer of `@shoal/driver`, a `MappedRange`, and any object with the memory protocol. The result is valid
   * while that object has the memory; later use throws `DisposedError`.
   * @throws RangeError if the elements exceed the memory.
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

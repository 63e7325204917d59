import type { CUdeviceptr } from '@shoal/cuda-sys/driver'
import {
  type CompoundType,
  type DType,
  dtypeOf,
  type ElementInputOf,
  type ElementType,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  optionalBoolean,
  requireInteger,
  requireMade,
  requireOptions,
  type StorageArray,
  type TypedArrayOf,
} from '@shoal/types'
import { afterCapture } from '../../core/context/capturing.js'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { afterUseOfMemory } from '../../core/inUse.js'
import { forgetLeak, Resource, releaseAfterFailure, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { bytesOf } from '../../core/ranges/arrayBytes.js'
import { type PinnedOwner, registerPinned } from '../../core/ranges/pinnedRegistry.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { structBytes } from './elements.js'
import { arrayFor, type HostArrayOf, nameOfType, requireElementType } from './elementType.js'
import { type DTypeOfArray, elementsIn, requireArrayFor } from './hostArrays.js'
import { ContextArray, requireViewable } from './hostMemory.js'

const flags = { portable: 1, mapped: 2, writeCombined: 4 } as const

/** Options of new page-locked memory. */
export interface PinnedOptions {
  /** Page-locks the memory for every context, not only for its own. Default: true. */
  readonly portable?: boolean | undefined
  /** Lets kernels read and write the memory at `deviceAddress`. Default: false. */
  readonly mapped?: boolean | undefined
  /** Makes copies to the device faster, but reading by the host very slow. Default: false. */
  readonly writeCombined?: boolean | undefined
}

export const pinnedKeys: OptionKeys<PinnedOptions> = { portable: true, mapped: true, writeCombined: true }

/**
 * Page-locked host memory as a real `ArrayBuffer` (`cuMemHostAlloc`, `cudaHostAlloc`).
 *
 * Copies between this memory and the device need no staging and do not block the thread. dispose() detaches the
 * `ArrayBuffer`: its arrays become empty.
 *
 * @example
 * using staging = PinnedBuffer.allocate(device, 'f32', 1024)
 * staging.array.fill(1)
 * buffer.copyFrom(staging, { stream }) // returns immediately
 */
export class PinnedBuffer<E extends ElementType = DType> extends Resource implements MemoryLike, PinnedOwner {
  protected readonly kind = 'PinnedBuffer'
  /** The context that created the memory. */
  readonly context: Context
  /** Type of the elements. */
  readonly dtype: E
  /** Number of elements. */
  readonly length: number
  /** Size of all elements in bytes. */
  readonly byteLength: number
  readonly #address: bigint
  /** @internal */
  readonly _start: U64Halves
  readonly #memory: ContextArray<E> | undefined
  readonly #isMapped: boolean
  #holds = 0
  #whenUnreachable: ((free: () => void) => void) | undefined

  private constructor(
    context: Context,
    dtype: E,
    length: number,
    byteLength: number,
    isMapped: boolean,
    address: bigint,
  ) {
    requireMade(address, 'PinnedBuffer', 'PinnedBuffer.allocate')
    super()
    this.context = context
    this.dtype = dtype
    this.length = length
    this.byteLength = byteLength
    this.#address = address
    this._start = halvesOf(address)
    this.#isMapped = isMapped
    if (byteLength === 0) return
    const memory = new ContextArray(context, address, byteLength, dtype, length)
    this.#memory = memory
    // Keeps this object, and therefore the memory, alive while the ArrayBuffer is reachable.
    registerPinned(memory.buffer, this)
    context._addChild()
    const { releaser } = memory
    watchForLeak(this, `A PinnedBuffer of ${byteLength} bytes`, () => {
      releaser(() => freeHost(context, address))
      return 'its memory is freed when the work of the device has ended'
    })
  }

  /**
   * Allocates uninitialized page-locked memory for `length` elements (`cuMemHostAlloc`, `cudaHostAlloc`).
   * @throws TypeError, RangeError; StatusError when there is not enough memory
   */
  static allocate<E extends ElementType>(
    owner: DeviceOrContext,
    dtype: E,
    length: number,
    options: PinnedOptions = {},
  ): PinnedBuffer<E> {
    return allocate(owner, dtype, length, options, 'PinnedBuffer.allocate')
  }

  /**
   * Copies an array to new page-locked memory. `dtype` is the type of the elements that the array's bits represent, or
   * the struct of the objects in a list. Default: the array's own type. @throws as {@link allocate}
   */
  static from<D extends DType>(
    owner: DeviceOrContext,
    array: TypedArrayOf<D>,
    options: PinnedOptions & { readonly dtype: D },
  ): PinnedBuffer<D>
  static from<S extends CompoundType>(
    owner: DeviceOrContext,
    values: ElementInputOf<S> | Uint8Array,
    options: PinnedOptions & { readonly dtype: S },
  ): PinnedBuffer<S>
  static from<A extends StorageArray>(
    owner: DeviceOrContext,
    array: A,
    options?: PinnedOptions,
  ): PinnedBuffer<DTypeOfArray<A>>
  static from(
    owner: DeviceOrContext,
    array: StorageArray | ArrayLike<object>,
    options: PinnedOptions & { readonly dtype?: ElementType } = {},
  ): PinnedBuffer<ElementType> {
    const api = 'PinnedBuffer.from'
    requireOptions(options, api, { ...pinnedKeys, dtype: true })
    const { dtype = dtypeOf(array as StorageArray, api, 'array'), ...rest } = options
    requireElementType(dtype, api, 'dtype')
    const held: unknown = structBytes(array, dtype, api, 'array')
    requireArrayFor(held, dtype, api, 'array')
    const buffer = allocate(owner, dtype, elementsIn(held, dtype, api, 'array'), rest, api)
    bytesOf(buffer.array).set(bytesOf(held))
    return buffer
  }

  /** @internal */
  static _make<E extends ElementType>(
    context: Context,
    dtype: E,
    length: number,
    byteLength: number,
    isMapped: boolean,
    address: bigint,
  ): PinnedBuffer<E> {
    return new PinnedBuffer(context, dtype, length, byteLength, isMapped, address)
  }

  /** The device of the memory. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** The elements. Reads and writes access the memory itself. @throws DisposedError */
  get array(): HostArrayOf<E> {
    this.#requireUsable()
    return this.#memory?.array ?? (arrayFor(this.dtype, 0) as HostArrayOf<E>)
  }

  /** The memory as an `ArrayBuffer`. @throws DisposedError */
  get buffer(): ArrayBuffer {
    return this.array.buffer as ArrayBuffer
  }

  /** The host address. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#address
  }

  /**
   * The address for kernels (`cuMemHostGetDevicePointer`, `cudaHostGetDevicePointer`).
   * @throws TypeError for memory that is not mapped; DisposedError
   */
  get deviceAddress(): CUdeviceptr {
    this.#requireUsable()
    if (!this.#isMapped) {
      throw new TypeError('PinnedBuffer.deviceAddress: the memory must be mapped; allocate it with { mapped: true }')
    }
    const out = scratch()
    this.context._call('memHostGetDevicePointer', out, this.#address, 0)
    return out.u64[0] as CUdeviceptr
  }

  get [memoryProtocol](): MemoryRange {
    const { length } = this
    const dtype: ElementType = this.dtype
    return {
      version: 0,
      address: this.address,
      byteLength: this.byteLength,
      deviceOrdinal: -1,
      context: this.context.handle,
      ...(typeof dtype === 'string' ? { dtype, length } : {}),
    }
  }

  /** @internal Keeps the memory for a copy: dispose() frees it only after the matching {@link _unhold}. */
  _hold(): void {
    this.#requireUsable()
    this.#holds += 1
  }

  /** @internal */
  _unhold(): void {
    this.#holds -= 1
    if (this.#holds === 0 && this._disposed) this.#free()
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { dtype: nameOfType(this.dtype), length: this.length }
  }

  protected release(): void {
    forgetLeak(this)
    this.#whenUnreachable = this.#memory?.detach().whenUnreachable
    if (this.#holds === 0) this.#free()
  }

  #requireUsable(): void {
    this._requireAlive()
    this.context._requireAlive()
  }

  #free(): void {
    const { context } = this
    const address = this.#address
    const free = (): void => freeHost(context, address)
    this.#whenUnreachable?.(() => afterUseOfMemory('A PinnedBuffer', address, this.byteLength, free))
  }
}

function allocate<E extends ElementType>(
  owner: DeviceOrContext,
  dtype: E,
  length: number,
  options: PinnedOptions,
  api: string,
): PinnedBuffer<E> {
  const context = contextOf(owner, api)
  const { bytes } = requireElementType(dtype, api)
  requireInteger(length, api, 'length', 0, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
  requireOptions(options, api, pinnedKeys)
  const isMapped = optionalBoolean(options.mapped, api, 'mapped', false)
  const bits =
    (optionalBoolean(options.portable, api, 'portable', true) ? flags.portable : 0) |
    (isMapped ? flags.mapped : 0) |
    (optionalBoolean(options.writeCombined, api, 'writeCombined', false) ? flags.writeCombined : 0)
  const byteLength = length * bytes
  if (byteLength === 0) return PinnedBuffer._make(context, dtype, length, 0, isMapped, 0n)
  requireViewable(byteLength, api)
  const out = scratch()
  context._callWithRoom(byteLength, 'memHostAlloc', out, byteLength, bits)
  const address = out.u64[0] as bigint
  try {
    return PinnedBuffer._make(context, dtype, length, byteLength, isMapped, address)
  } catch (error) {
    releaseAfterFailure('Page-locked memory', () => context._release('memFreeHost', address))
    throw error
  }
}

function freeHost(context: Context, address: bigint): void {
  const what = 'A PinnedBuffer'
  const free = context._releaseCall('memFreeHost', address)
  afterCapture(what, () => context._releases.add(what, [free], () => context._removeChild()))
}

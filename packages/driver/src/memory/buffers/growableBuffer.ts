import {
  type DType,
  type ElementType,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  requireInteger,
  requireList,
  requireMade,
  requireOptions,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { Resource, releaseAfterFailure } from '../../core/lifetime.js'
import type { AccessGrant } from '../vmm/access.js'
import { GrowableRange } from '../vmm/growableRange.js'
import { type MemoryPlace, resolvePlace } from '../vmm/location.js'
import type { AllocationOptions } from '../vmm/properties.js'
import { DeviceBuffer } from './deviceBuffer.js'
import { nameOfType, requireElementType } from './elementType.js'

/** Options of a growable buffer. */
export interface GrowableBufferOptions extends AllocationOptions {
  /** Maximum number of elements. The buffer reserves addresses for all these elements, but no memory. */
  readonly maximumLength: number
  /** Initial number of elements. Default: 0. */
  readonly length?: number | undefined
  /** Minimum growth in bytes. Default: the recommended granularity. */
  readonly stepBytes?: number | undefined
  /** Additional devices that can read and write the memory. */
  readonly sharedWith?: readonly MemoryPlace[] | undefined
}

export const growableBufferKeys: OptionKeys<GrowableBufferOptions> = {
  maximumLength: true,
  length: true,
  stepBytes: true,
  sharedWith: true,
  handleTypes: true,
  gpuDirectRdma: true,
  compressible: true,
}

/** Maximum number of bytes for which addresses can be reserved. */
const mostBytes = 2 ** 47

/**
 * Typed device memory that grows and shrinks in place. The address never changes and nothing is copied, so addresses
 * that kernels stored stay valid.
 *
 * @example
 * using cache = GrowableBuffer.reserve(device, 'f32', { maximumLength: 2 ** 30 }) // addresses alone
 * cache.resize(1_000_000).buffer.fill(0)
 */
export class GrowableBuffer<E extends ElementType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'GrowableBuffer'
  /** The context of the memory. */
  readonly context: Context
  /** Type of the elements. */
  readonly dtype: E
  readonly #range: GrowableRange
  readonly #bytes: number
  /** Maximum number of elements as requested, although addresses are reserved in whole granules. */
  readonly maximumLength: number
  #view: DeviceBuffer<E> | undefined

  private constructor(context: Context, dtype: E, bytes: number, range: GrowableRange, maximumLength: number) {
    requireMade(range, 'GrowableBuffer', 'GrowableBuffer.reserve', 'object')
    super()
    this.context = context
    this.dtype = dtype
    this.#bytes = bytes
    this.#range = range
    this.maximumLength = maximumLength
  }

  /**
   * Reserves the addresses and allocates the initial elements.
   * @throws RangeError, TypeError; StatusError when there are not enough addresses or memory
   */
  static reserve<E extends ElementType>(
    owner: DeviceOrContext,
    dtype: E,
    options: GrowableBufferOptions,
  ): GrowableBuffer<E> {
    return GrowableBuffer._reserve(owner, dtype, options, 'GrowableBuffer.reserve')
  }

  /** @internal Reserves the addresses. Errors name the function `api`. */
  static _reserve<E extends ElementType>(
    owner: DeviceOrContext,
    dtype: E,
    options: GrowableBufferOptions,
    api: string,
  ): GrowableBuffer<E> {
    const context = contextOf(owner, api)
    requireOptions(options, api, growableBufferKeys)
    const { bytes } = requireElementType(dtype, api)
    const { maximumLength, length = 0, sharedWith, stepBytes, handleTypes, gpuDirectRdma, compressible } = options
    const mostElements = Math.floor(mostBytes / bytes)
    const maximumBytes = requireInteger(maximumLength, api, 'maximumLength', 1, mostElements) * bytes
    const access = sharedWith === undefined ? undefined : readWriteFor(sharedWith, api)
    const made = { maximumBytes, stepBytes, handleTypes, gpuDirectRdma, compressible, access }
    requireInteger(length, api, 'length', 0, maximumLength)
    if (stepBytes !== undefined) requireInteger(stepBytes, api, 'stepBytes', 1)
    const range = GrowableRange._reserve(context.device, made, api)
    const buffer = new GrowableBuffer(context, dtype, bytes, range, maximumLength)
    if (length === 0) return buffer
    try {
      return buffer.resize(length)
    } catch (error) {
      releaseAfterFailure('A GrowableBuffer', () => buffer.dispose())
      throw error
    }
  }

  /** The device of the memory. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** Address of the first element. It never changes. @throws DisposedError */
  get address(): bigint {
    this._requireAlive()
    return this.#range.address
  }

  /** Number of elements. */
  get length(): number {
    return this.byteLength / this.#bytes
  }

  /** Size of the current elements in bytes. */
  get byteLength(): number {
    return this.#range.byteLength
  }

  /** Number of elements that fit in the current memory. */
  get capacity(): number {
    return Math.floor(this.#range.capacity / this.#bytes)
  }

  /**
   * Grows or shrinks the buffer to `length` elements. New elements are uninitialized. Shrinking frees whole granules on
   * a native thread when the device's work completes.
   * @throws RangeError above `maximumLength`; StatusError when memory is short, with nothing changed
   */
  resize(length: number): this {
    this._requireAlive()
    this.#range.resize(requireInteger(length, 'GrowableBuffer.resize', 'length', 0, this.maximumLength) * this.#bytes)
    if (this.#view?.length !== length) this.#view = undefined
    return this
  }

  /** The elements as a buffer, for copies, fills and kernels. After a shrink, an earlier buffer throws on use. */
  get buffer(): DeviceBuffer<E> {
    this._requireAlive()
    this.#view ??= DeviceBuffer.view(this.context, this.#range, this.dtype, { length: this.length })
    return this.#view
  }

  get [memoryProtocol](): MemoryRange {
    this._requireAlive()
    return this.buffer[memoryProtocol]
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { dtype: nameOfType(this.dtype), length: this.length, device: this.context.device.ordinal }
  }

  protected release(): void {
    this.#range.dispose()
  }
}

function readWriteFor(places: readonly MemoryPlace[], api: string): AccessGrant[] {
  return requireList(places, api, 'sharedWith', 'a list of devices').map((place, index) => {
    resolvePlace(place, api, `sharedWith[${index}]`)
    return { place, access: 'readWrite' }
  })
}

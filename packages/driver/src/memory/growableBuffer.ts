import {
  type AccessGrant,
  type AllocationOptions,
  GrowableRange,
  giveBackUnused,
  type MemoryPlace,
  Resource,
  requireDType,
  requireInteger,
  requireOptions,
} from '@shoal/cuda-base'
import { type DType, describeValue, type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import type { Device } from '../device.js'
import { DeviceBuffer } from './deviceBuffer.js'

/** How a growable buffer is made. */
export interface GrowableBufferOptions extends AllocationOptions {
  /** Elements it can grow to. Addresses are reserved for all of them, memory is not. */
  readonly maximumLength: number
  /** Elements it has at first. Default: 0. */
  readonly length?: number | undefined
  /** Bytes that it grows by at least. Default: the recommended granularity. */
  readonly stepBytes?: number | undefined
  /** Further devices that may read and write it. */
  readonly sharedWith?: readonly MemoryPlace[] | undefined
}

/** As much as addresses can be reserved for. */
const mostBytes = 2 ** 47

/**
 * Typed memory of a device that grows and shrinks in place: the address never changes and nothing is copied, so kernels
 * that were told the address go on working.
 */
export class GrowableBuffer<D extends DType = DType> extends Resource implements MemoryLike {
  protected readonly kind = 'GrowableBuffer'
  readonly device: Device
  readonly dtype: D
  readonly #range: GrowableRange
  readonly #bytes: number
  #view: DeviceBuffer<D> | undefined

  private constructor(device: Device, dtype: D, bytes: number, range: GrowableRange) {
    super()
    this.device = device
    this.dtype = dtype
    this.#bytes = bytes
    this.#range = range
  }

  /** Reserves the addresses and makes the first elements. @throws RangeError, TypeError, StatusError */
  static reserve<D extends DType>(device: Device, dtype: D, options: GrowableBufferOptions): GrowableBuffer<D> {
    requireOptions(options, 'options', '{ maximumLength }')
    const { bytes } = requireDType(dtype)
    const { maximumLength, length = 0, sharedWith, stepBytes, handleTypes, gpuDirectRdma, compressible } = options
    const maximumBytes = requireInteger(maximumLength, 'maximumLength', 1, Math.floor(mostBytes / bytes)) * bytes
    const access = sharedWith === undefined ? undefined : readWriteFor(sharedWith)
    const made = { maximumBytes, stepBytes, handleTypes, gpuDirectRdma, compressible, access }
    const range = GrowableRange.reserve(device, made)
    const buffer = new GrowableBuffer(device, dtype, bytes, range)
    if (length === 0) return buffer
    try {
      return buffer.resize(length)
    } catch (error) {
      giveBackUnused('A GrowableBuffer', () => buffer.dispose())
      throw error
    }
  }

  /** The first address; the same for ever. @throws DisposedError */
  get address(): bigint {
    this._requireAlive()
    return this.#range.address
  }

  /** Number of elements. */
  get length(): number {
    return this.byteLength / this.#bytes
  }

  get byteLength(): number {
    return this.#range.byteLength
  }

  /** Elements there is memory for now. */
  get capacity(): number {
    return Math.floor(this.#range.capacity / this.#bytes)
  }

  /** Elements it can grow to. */
  get maximumLength(): number {
    return Math.floor(this.#range.maximumBytes / this.#bytes)
  }

  /**
   * Grows or shrinks it to this many elements. New elements have no defined value. Shrinking gives memory back in whole
   * pieces and blocks until the work of the device has ended.
   * @throws RangeError above `maximumLength`; StatusError when memory is short, with nothing changed.
   */
  resize(length: number): this {
    this._requireAlive()
    this.#range.resize(requireInteger(length, 'length', 0, this.maximumLength) * this.#bytes)
    if (this.#view?.length !== length) this.#view = undefined
    return this
  }

  /** Its elements as a buffer, for copies, fills and kernels. One that was taken before it shrank refuses to be used. */
  get buffer(): DeviceBuffer<D> {
    this._requireAlive()
    this.#view ??= DeviceBuffer.view(this.device, this.#range, this.dtype, { length: this.length })
    return this.#view
  }

  get [memoryProtocol](): MemoryRange {
    this._requireAlive()
    return this.buffer[memoryProtocol]
  }

  get [Symbol.toStringTag](): string {
    return 'GrowableBuffer'
  }

  /** Gives everything back without blocking the thread while work still uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this._disposed) return
    this._disposed = true
    await this.#range[Symbol.asyncDispose]()
  }

  protected release(): void {
    this.#range.dispose()
  }
}

function readWriteFor(places: readonly MemoryPlace[]): AccessGrant[] {
  if (!Array.isArray(places)) throw new TypeError(`sharedWith must be a list, not ${describeValue(places)}`)
  return places.map((place: MemoryPlace) => ({ place, access: 'readWrite' }))
}

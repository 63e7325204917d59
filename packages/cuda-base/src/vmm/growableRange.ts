import { type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import { requireInteger, requireOptions } from '../checks.js'
import { type Context, contextOf, type DeviceWithContext } from '../context.js'
import { forgetLeak, Resource, watchForLeak } from '../lifetime.js'
import { type AccessGrant, resolveGrants } from './access.js'
import { AddressRange, reservationUnit } from './addressRange.js'
import type { MappedRange } from './mappedRange.js'
import { PhysicalMemory } from './physicalMemory.js'
import { type AllocationOptions, allocationGranularity } from './properties.js'

/** How growable memory is made. */
export interface GrowableOptions extends AllocationOptions {
  /** Bytes it can grow to; rounded up to the granularity. Addresses are reserved for all of them, memory is not. */
  readonly maximumBytes: number
  /** Bytes that it grows by at least. Default: the recommended granularity. */
  readonly stepBytes?: number | undefined
  /** Further devices that may use it. */
  readonly access?: readonly AccessGrant[] | undefined
}

interface Piece {
  readonly mapped: MappedRange
  readonly end: number
}

/** Memory of a device that grows and shrinks in place: its address never changes and nothing is copied. */
export class GrowableRange extends Resource implements MemoryLike {
  protected readonly kind = 'GrowableRange'
  readonly #context: Context
  readonly #device: DeviceWithContext
  readonly #range: AddressRange
  readonly #options: AllocationOptions
  readonly #access: readonly AccessGrant[]
  readonly #granularity: number
  readonly #step: number
  readonly #pieces: Piece[] = []
  #byteLength = 0

  private constructor(
    device: DeviceWithContext,
    range: AddressRange,
    step: number,
    granularity: number,
    options: GrowableOptions,
  ) {
    super()
    this.#device = device
    this.#context = contextOf(device)
    this.#context._addChild()
    const context = this.#context
    watchForLeak(this, `A GrowableRange of ${range.byteLength} bytes`, () => {
      context._removeChild()
      return 'what it consists of is given back with it'
    })
    this.#range = range
    this.#step = step
    this.#granularity = granularity
    const { handleTypes, gpuDirectRdma, compressible, access = [] } = options
    this.#options = { handleTypes, gpuDirectRdma, compressible }
    this.#access = [{ place: device, access: 'readWrite' }, ...access]
  }

  /** Reserves the addresses. @throws RangeError, TypeError, StatusError */
  static reserve(device: DeviceWithContext, options: GrowableOptions): GrowableRange {
    requireOptions(options, 'options', '{ maximumBytes }')
    const { handleTypes, gpuDirectRdma, compressible } = options
    const properties = { handleTypes, gpuDirectRdma, compressible }
    const granularity = allocationGranularity(device, properties)
    const step = options.stepBytes ?? allocationGranularity(device, { ...properties, granularity: 'recommended' })
    requireInteger(step, 'stepBytes', 1, Number.MAX_SAFE_INTEGER)
    requireInteger(options.maximumBytes, 'maximumBytes', 1, 2 ** 47)
    resolveGrants(options.access ?? [])
    const range = AddressRange.reserve(roundUp(options.maximumBytes, Math.max(granularity, reservationUnit)))
    return new GrowableRange(device, range, roundUp(step, granularity), granularity, options)
  }

  /** The first address; the same for ever. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#range.address
  }

  /** Bytes in use, as {@link resize} was told. */
  get byteLength(): number {
    return this.#byteLength
  }

  /** Bytes that memory is mapped for. */
  get capacity(): number {
    return this.#pieces.at(-1)?.end ?? 0
  }

  /** Bytes it can grow to. */
  get maximumBytes(): number {
    return this.#range.byteLength
  }

  /**
   * Grows or shrinks it. What is beyond the old length has no defined contents. Shrinking gives whole pieces back that
   * are not needed any more, and blocks until the work of the device has ended.
   * @throws RangeError above `maximumBytes`; StatusError when memory is short, with nothing changed.
   */
  resize(byteLength: number): this {
    this.#requireUsable()
    requireInteger(byteLength, 'byteLength', 0, this.maximumBytes)
    if (byteLength > this.capacity) this.#grow(byteLength)
    while (this.#pieces.length > 0 && (this.#pieces.at(-2)?.end ?? 0) >= byteLength) {
      this.#pieces.at(-1)?.mapped.dispose()
      this.#pieces.pop()
    }
    this.#byteLength = byteLength
    return this
  }

  get [memoryProtocol](): MemoryRange {
    const { address } = this
    return {
      version: 0,
      address,
      byteLength: this.#byteLength,
      device: this.#context.device.ordinal,
      context: this.#context.handle,
    }
  }

  get [Symbol.toStringTag](): string {
    return 'GrowableRange'
  }

  /** Gives everything back without blocking the thread while work still uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this._disposed) return
    this._disposed = true
    forgetLeak(this)
    const pieces = this.#pieces.splice(0)
    try {
      this.#range.dispose()
      const ends = await Promise.allSettled(pieces.map(({ mapped }) => mapped[Symbol.asyncDispose]()))
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    } finally {
      this.#context._removeChild()
    }
  }

  protected release(): void {
    forgetLeak(this)
    const failures: unknown[] = []
    for (const object of [this.#range, ...this.#pieces.splice(0).map(({ mapped }) => mapped)]) {
      try {
        object.dispose()
      } catch (error) {
        failures.push(error)
      }
    }
    this.#context._removeChild()
    if (failures.length > 0) throw failures[0]
  }

  #requireUsable(): void {
    this._requireAlive()
    this.#context._requireAlive()
  }

  #grow(byteLength: number): void {
    const start = this.capacity
    const wanted = roundUp(Math.max(byteLength - start, this.#step), this.#granularity)
    const size = Math.min(wanted, this.maximumBytes - start)
    // The mapping keeps the memory; the handle is not needed beyond this.
    const physical = PhysicalMemory.create(this.#device, size, this.#options)
    try {
      const mapped = this.#range.map(physical, { offset: start, access: this.#access })
      this.#pieces.push({ mapped, end: start + size })
    } finally {
      physical.dispose()
    }
  }
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit
}

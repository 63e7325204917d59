import { type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import { requireInteger, requireOptions } from '../checks.js'
import { type Context, contextOf, type DeviceWithContext } from '../context.js'
import { forgetLeak, Resource, type ShortLived, watchForLeak, watchLater } from '../lifetime.js'
import { startDriver } from '../start.js'
import { type AccessGrant, resolveGrants, type WrittenGrants, writeGrants } from './access.js'
import { AddressRange, reservationUnit } from './addressRange.js'
import type { MappedRange } from './mappedRange.js'
import { PhysicalMemory } from './physicalMemory.js'
import {
  type AllocationOptions,
  granularityCode,
  granularityOf,
  type ResolvedProperties,
  resolveProperties,
} from './properties.js'

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
export class GrowableRange extends Resource implements MemoryLike, ShortLived {
  protected readonly kind = 'GrowableRange'
  readonly #context: Context
  readonly #range: AddressRange
  /** What each piece is made with, and who may use it. */
  readonly #properties: ResolvedProperties
  readonly #grants: WrittenGrants
  readonly #granularity: number
  readonly #step: number
  readonly #pieces: Piece[] = []
  #byteLength = 0
  #isWatched = false

  private constructor(
    context: Context,
    range: AddressRange,
    step: number,
    granularity: number,
    properties: ResolvedProperties,
    grants: WrittenGrants,
  ) {
    super()
    this.#context = context
    context._addChild()
    this.#range = range
    this.#step = step
    this.#granularity = granularity
    this.#properties = properties
    this.#grants = grants
    watchLater(this)
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const context = this.#context
    const range = this.#range
    watchForLeak(this, `A GrowableRange of ${range.byteLength} bytes`, () => {
      context._removeChild()
      return 'what it consists of is given back with it'
    })
  }

  /** Reserves the addresses. @throws RangeError, TypeError, StatusError */
  static reserve(device: DeviceWithContext, options: GrowableOptions): GrowableRange {
    requireOptions(options, 'options', '{ maximumBytes }')
    const { handleTypes, gpuDirectRdma, compressible, access = [] } = options
    startDriver()
    const properties = resolveProperties(device, { handleTypes, gpuDirectRdma, compressible })
    const granularity = granularityOf(properties)
    const step = options.stepBytes ?? granularityOf(properties, granularityCode('recommended'))
    requireInteger(step, 'stepBytes', 1, Number.MAX_SAFE_INTEGER)
    requireInteger(options.maximumBytes, 'maximumBytes', 1, 2 ** 47)
    const grants = writeGrants([...resolveGrants([{ place: device, access: 'readWrite' }]), ...resolveGrants(access)])
    const range = AddressRange.reserve(roundUp(options.maximumBytes, Math.max(granularity, reservationUnit)))
    return new GrowableRange(contextOf(device), range, roundUp(step, granularity), granularity, properties, grants)
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
    if (this.#isWatched) forgetLeak(this)
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
    if (this.#isWatched) forgetLeak(this)
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
    const physical = PhysicalMemory._make(this.#properties, size)
    try {
      const mapped = this.#range._mapWhole(physical, start, this.#grants)
      this.#pieces.push({ mapped, end: start + size })
    } finally {
      physical.dispose()
    }
  }
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit
}

import { DisposedError } from '@shoal/types'
import { requireAddress, requireInteger, requireOptions } from '../checks.js'
import { forgetLeak, processIsEnding, Resource, type ShortLived, watchForLeak, watchLater } from '../lifetime.js'
import { startDriver } from '../start.js'
import { freeAddresses, reservationUnit, reserveAddresses } from './addresses.js'
import { type MapOptions, type Mappable, MappedRange } from './mappedRange.js'
import { requireMultiple } from './properties.js'

/** How addresses are reserved. */
export interface ReserveOptions {
  /** Bytes that the address shall be a multiple of: a power of two. Default: the driver's choice. */
  readonly alignment?: number | undefined
  /** An address to try first; the driver may choose another. */
  readonly address?: bigint | undefined
}

/**
 * Addresses that are reserved and nothing else, until physical memory is mapped there. Disposing of it while something
 * is mapped gives the addresses back when the last mapping goes.
 */
export class AddressRange extends Resource implements ShortLived {
  protected readonly kind = 'AddressRange'
  readonly byteLength: number
  readonly #address: bigint
  /** Offsets of what is mapped, to its length. */
  readonly #mapped = new Map<number, number>()
  /** Beyond it nothing is mapped. */
  #mappedEnd = 0
  #isFreed = false
  #isWatched = false

  private constructor(address: bigint, byteLength: number) {
    super()
    this.#address = address
    this.byteLength = byteLength
    watchLater(this)
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const { byteLength } = this
    const address = this.#address
    watchForLeak(this, `An AddressRange of ${byteLength} bytes`, () => {
      freeAddresses(address, byteLength)
      return 'its addresses are given back'
    })
  }

  /**
   * Reserves addresses (`cuMemAddressReserve`).
   * @param byteLength a multiple of 2 MiB.
   * @throws RangeError for another length or alignment, StatusError when there are not as many.
   */
  static reserve(byteLength: number, options: ReserveOptions = {}): AddressRange {
    requireOptions(options, 'options', '{ alignment }')
    const { alignment = 0, address = 0n } = options
    requireMultiple(byteLength, 'byteLength', reservationUnit)
    requireInteger(alignment, 'alignment', 0, 2 ** 47)
    if (alignment !== 0 && !Number.isInteger(Math.log2(alignment))) {
      throw new RangeError(`alignment must be a power of two, not ${alignment}`)
    }
    requireAddress(address, 'address')
    startDriver()
    return new AddressRange(reserveAddresses(byteLength, alignment, address), byteLength)
  }

  /** The first address. @throws DisposedError */
  get address(): bigint {
    this._requireAlive()
    return this.#address
  }

  /** Bytes of it that something is mapped at. */
  get mappedBytes(): number {
    let sum = 0
    for (const length of this.#mapped.values()) sum += length
    return sum
  }

  /**
   * Maps physical memory, or a multicast object, at an offset (`cuMemMap`) and gives access to it (`cuMemSetAccess`). The
   * same memory may be mapped several times.
   * @throws RangeError when it does not fit or overlaps what is mapped; StatusError from the driver, with nothing mapped.
   */
  map(memory: Mappable, options: MapOptions = {}): MappedRange {
    const { address } = this
    return MappedRange._map(this, address, memory, options)
  }

  /** @internal Notes a mapping. @throws RangeError when it overlaps another one or ends beyond the range. */
  _claim(offset: number, byteLength: number): void {
    if (offset + byteLength > this.byteLength) {
      throw new RangeError(
        `offset ${offset} and ${byteLength} bytes end beyond the range, which has ${this.byteLength} bytes`,
      )
    }
    if (offset < this.#mappedEnd) this.#requireFree(offset, byteLength)
    this.#mapped.set(offset, byteLength)
    this.#mappedEnd = Math.max(this.#mappedEnd, offset + byteLength)
  }

  /** @internal Takes a mapping back. */
  _unclaim(offset: number): void {
    this.#mapped.delete(offset)
    if (this.#mapped.size === 0) this.#mappedEnd = 0
    if (this._disposed) this.#freeIfUnused()
  }

  override _requireAlive(): void {
    if (this._disposed) {
      const left = this.#mapped.size === 0 ? '' : ' (its addresses go with its last mapping)'
      throw new DisposedError(`AddressRange${left}`)
    }
  }

  protected release(): void {
    this.#freeIfUnused()
  }

  #requireFree(offset: number, byteLength: number): void {
    for (const [start, length] of this.#mapped) {
      if (offset < start + length && start < offset + byteLength) {
        throw new RangeError(
          `${byteLength} bytes at offset ${offset} overlap what is mapped at ${start}, ${length} bytes`,
        )
      }
    }
  }

  #freeIfUnused(): void {
    if (this.#mapped.size > 0 || this.#isFreed) return
    this.#isFreed = true
    if (this.#isWatched) forgetLeak(this)
    if (!processIsEnding()) freeAddresses(this.#address, this.byteLength)
  }
}

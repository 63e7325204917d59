import {
  DisposedError,
  type OptionKeys,
  optionalOptions,
  outOfRange,
  requireAddress,
  requireInteger,
  requireMade,
} from '@shoal/types'
import { finishReleasesSync } from '../../core/context/releases.js'
import {
  forgetLeak,
  processIsEnding,
  Resource,
  type ShortLived,
  watchForLeak,
  watchLater,
} from '../../core/lifetime.js'
import { startDriver } from '../../core/start.js'
import { freeAddresses, reservationUnit, reserveAddresses } from './addresses.js'
import { type MapOptions, type Mappable, MappedRange } from './mappedRange.js'
import { requireMultiple, requireRoom } from './properties.js'

/** Options of reserved addresses. */
export interface ReserveOptions {
  /** Alignment of the address in bytes, a power of two. Default: the driver's choice. */
  readonly alignment?: number | undefined
  /** Preferred address. The driver may choose another. */
  readonly address?: bigint | undefined
}

const reserveKeys: OptionKeys<ReserveOptions> = { alignment: true, address: true }

/**
 * Reserved addresses, into which you map physical memory. `dispose()` frees the addresses, or lets the last mapping
 * free them.
 * @example
 * using range = AddressRange.reserve(memory.byteLength)
 * using mapped = range.map(memory)
 * const floats = DeviceBuffer.view(device, mapped, 'f32')
 */
export class AddressRange extends Resource implements ShortLived {
  protected readonly kind = 'AddressRange'
  /** Number of reserved addresses, in bytes. */
  readonly byteLength: number
  readonly #address: bigint
  /** Lengths of the mappings in bytes, by offset. */
  readonly #mapped = new Map<number, number>()
  /** The end of the last mapping. */
  #mappedEnd = 0
  #isFreed = false
  #isWatched = false

  private constructor(address: bigint, byteLength: number) {
    requireMade(byteLength, 'AddressRange', 'AddressRange.reserve', 'number')
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
      return 'its addresses are freed'
    })
  }

  /**
   * Reserves addresses (`cuMemAddressReserve`).
   * @param byteLength a multiple of 2 MiB
   * @throws TypeError; RangeError for an invalid length or alignment; StatusError when there are not enough addresses
   */
  static reserve(byteLength: number, options?: ReserveOptions): AddressRange {
    const api = 'AddressRange.reserve'
    const { alignment = 0, address = 0n } = optionalOptions(options, api, reserveKeys)
    requireMultiple(byteLength, api, 'byteLength', reservationUnit)
    requireInteger(alignment, api, 'alignment', 0, 2 ** 47)
    if (alignment !== 0 && !Number.isInteger(Math.log2(alignment))) {
      throw outOfRange(api, 'alignment', 'a power of two', alignment)
    }
    requireAddress(address, api, 'address')
    startDriver()
    return new AddressRange(reserveAddresses(byteLength, alignment, address), byteLength)
  }

  /** First address of the range. @throws DisposedError */
  get address(): bigint {
    this._requireAlive()
    return this.#address
  }

  /** Number of mapped bytes. */
  get mappedBytes(): number {
    let sum = 0
    for (const length of this.#mapped.values()) sum += length
    return sum
  }

  /**
   * Maps physical memory or a multicast object at an offset and grants access (`cuMemMap`, `cuMemSetAccess`). The same
   * memory can be mapped several times.
   * @param memory an object, or the raw `CUmemGenericAllocationHandle` of this process's physical memory, which
   * requires `byteLength`
   * @throws TypeError; RangeError for memory that does not fit or overlaps another mapping; StatusError, with nothing
   * mapped; DisposedError
   */
  map(memory: Mappable | bigint, options?: MapOptions): MappedRange {
    return MappedRange._map(this, this.address, memory, options)
  }

  /** @internal Records a mapping. @throws RangeError when it overlaps another mapping or exceeds the range */
  _addMapping(api: string, offset: number, byteLength: number): void {
    requireRoom(api, 'offset', offset, byteLength, this.byteLength, 'range')
    if (offset < this.#mappedEnd) this.#requireNoOverlap(api, offset, byteLength)
    this.#mapped.set(offset, byteLength)
    this.#mappedEnd = Math.max(this.#mappedEnd, offset + byteLength)
  }

  /** @internal Removes a mapping. */
  _removeMapping(offset: number): void {
    this.#mapped.delete(offset)
    if (this.#mapped.size === 0) this.#mappedEnd = 0
    if (this._disposed) this.#freeIfUnused()
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { byteLength, mappedBytes } = this
    return { address: this.#address, byteLength, mappedBytes }
  }

  override _requireAlive(): void {
    if (!this._disposed) return
    throw new DisposedError(
      this.#isFreed ? 'AddressRange' : 'AddressRange (its addresses are freed with its last mapping)',
    )
  }

  protected release(): void {
    this.#freeIfUnused()
  }

  #requireNoOverlap(api: string, offset: number, byteLength: number): void {
    // Disposed mappings can still exist while the device works.
    if (this.#overlapping(offset, byteLength) !== undefined) finishReleasesSync()
    const other = this.#overlapping(offset, byteLength)
    if (other === undefined) return
    const [start, length] = other
    const expected = `such that ${byteLength} bytes do not overlap the ${length} bytes mapped at ${start}`
    throw outOfRange(api, 'offset', expected, offset)
  }

  #overlapping(offset: number, byteLength: number): readonly [start: number, length: number] | undefined {
    return [...this.#mapped].find(([start, length]) => offset < start + length && start < offset + byteLength)
  }

  #freeIfUnused(): void {
    if (this.#mapped.size > 0 || this.#isFreed) return
    this.#isFreed = true
    if (this.#isWatched) forgetLeak(this)
    if (!processIsEnding()) freeAddresses(this.#address, this.byteLength)
  }
}

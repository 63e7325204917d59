import {
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  requireInteger,
  requireMade,
  requireOptions,
} from '@shoal/types'
import { afterCapture } from '../../core/context/capturing.js'
import type { Context, DeviceOrContext } from '../../core/context/context.js'
import { finishReleasesSync } from '../../core/context/releases.js'
import { afterUseOfMemory, isAnythingInUse, whenMemoryUnused } from '../../core/inUse.js'
import {
  changeLeakBytes,
  forgetLeak,
  type Leak,
  processIsEnding,
  Resource,
  type ShortLived,
  watchForLeak,
  watchLater,
} from '../../core/lifetime.js'
import { startDriver } from '../../core/start.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { type AccessGrant, resolveGrants, type WrittenGrants, writeGrants } from './access.js'
import { freeAddresses, reservationUnit, reserveAddresses } from './addresses.js'
import { type DevicePlace, resolveDevice } from './location.js'
import { createAndMap } from './mappingCalls.js'
import {
  type AllocationOptions,
  allocationKeys,
  granularityCodes,
  granularityOf,
  hasNoOptions,
  propertiesAt,
  type ResolvedProperties,
} from './properties.js'
import { type Mapping, unmapLate } from './unmapLate.js'

/** Options of growable memory. */
export interface GrowableOptions extends AllocationOptions {
  /**
   * Maximum size in bytes, rounded up to the granularity. The range reserves addresses for all these bytes, but no
   * memory.
   */
  readonly maximumBytes: number
  /** Minimum growth in bytes. Default: the recommended granularity. */
  readonly stepBytes?: number | undefined
  /** Access of places other than the memory's own device. */
  readonly access?: readonly AccessGrant[] | undefined
}

/** Keys of {@link GrowableOptions}. */
export const growableKeys: OptionKeys<GrowableOptions> = {
  maximumBytes: true,
  stepBytes: true,
  access: true,
  ...allocationKeys,
}

/** Resources to free. They do not refer to the range, because the range may be collected first. */
interface Pieces {
  readonly address: bigint
  readonly words: U64Halves
  /** Size of the reserved addresses in bytes. */
  readonly byteLength: number
  /** End of each piece of memory, in bytes from the start. Each piece starts at the end of the previous one. */
  readonly ends: number[]
  /** Contexts whose work may use the memory. Unmapping waits for this work. */
  readonly users: readonly Context[]
}

/**
 * Device memory that grows and shrinks in place. The address never changes and nothing is copied.
 *
 * The range reserves addresses for the maximum size. Each growth maps another piece of physical memory after the last.
 * @example
 * using range = GrowableRange.reserve(device, { maximumBytes: 2 ** 34 })
 * range.resize(2 ** 21)
 * const first = DeviceBuffer.view(device, range, 'f32')
 * range.resize(2 ** 30) // the address and the contents stay
 */
export class GrowableRange extends Resource implements MemoryLike, ShortLived {
  protected readonly kind = 'GrowableRange'
  readonly #context: Context
  readonly #pieces: Pieces
  /** Properties and access rights of each piece. */
  readonly #properties: ResolvedProperties
  readonly #grants: WrittenGrants
  readonly #granularity: number
  readonly #step: number
  #capacity = 0
  #byteLength = 0
  /** Answer of the memory protocol for the current length. */
  #description: MemoryRange | undefined
  /** The leak watch, if the object outlives the turn that created it. */
  #leak: Leak | undefined
  /** Whether disposed pieces may still be mapped at the end of the range. */
  #hasShrunk = false

  private constructor(
    context: Context,
    address: bigint,
    byteLength: number,
    step: number,
    granularity: number,
    properties: ResolvedProperties,
    grants: WrittenGrants,
  ) {
    requireMade(grants, 'GrowableRange', 'GrowableRange.reserve', 'object')
    super()
    const { users } = grants
    this.#context = context
    this.#pieces = { address, words: halvesOf(address), byteLength, ends: [], users }
    this.#step = step
    this.#granularity = granularity
    this.#properties = properties
    this.#grants = grants
    for (const user of users) user._addChild()
    watchLater(this)
  }

  /** @internal */
  _watch(): void {
    const pieces = this.#pieces
    const what = `A GrowableRange of ${pieces.byteLength} bytes`
    const reclaim = (): string => {
      freeLate(what, pieces)
      return 'its memory is freed when the work that uses it has ended'
    }
    this.#leak = watchForLeak(this, what, reclaim, 'dispose()', this.#context._pressureOf(this.#capacity))
  }

  /**
   * Reserves the addresses (`cuMemAddressReserve`). {@link resize} allocates the memory.
   * @param device the memory's device, which can read and write it
   * @throws TypeError, RangeError; StatusError when there are not enough addresses
   */
  static reserve(device: DeviceOrContext, options: GrowableOptions): GrowableRange {
    const api = 'GrowableRange.reserve'
    requireOptions(options, api, growableKeys)
    return GrowableRange._reserve(device, options, api)
  }

  /** @internal Reserves the addresses. Errors name the function `api`. */
  static _reserve(device: DeviceOrContext, options: GrowableOptions, api: string): GrowableRange {
    startDriver()
    const place = resolveDevice(device, api)
    const hasDefaults = options.access === undefined && hasNoOptions(options)
    const { properties, grants, granularity } = hasDefaults ? defaultSetup(place) : setUp(place, options, api)
    const { stepBytes: step = granularityOf(properties, granularityCodes.recommended) } = options
    requireInteger(step, api, 'stepBytes', 1)
    requireInteger(options.maximumBytes, api, 'maximumBytes', 1, 2 ** 47)
    const byteLength = roundUp(options.maximumBytes, Math.max(granularity, reservationUnit))
    const rounded = roundUp(step, granularity)
    const address = reserveAddresses(byteLength)
    return new GrowableRange(place.context, address, byteLength, rounded, granularity, properties, grants)
  }

  /** Address of the first byte, which never changes. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#pieces.address
  }

  /** Current size in bytes, as given to {@link resize}. */
  get byteLength(): number {
    return this.#byteLength
  }

  /** Size of the mapped memory in bytes. */
  get capacity(): number {
    return this.#capacity
  }

  /** Maximum size in bytes. */
  get maximumBytes(): number {
    return this.#pieces.byteLength
  }

  /**
   * Grows or shrinks the memory to `byteLength` bytes (`cuMemCreate`, `cuMemMap`, `cuMemSetAccess`; `cuMemUnmap`). New
   * bytes are uninitialized. Shrinking frees whole unused pieces on a native thread, when the work of the devices with
   * access completes. An error of that release becomes a process warning.
   * @throws RangeError above `maximumBytes`; StatusError when memory is short, with nothing changed; DisposedError
   */
  resize(byteLength: number): this {
    this.#requireUsable()
    requireInteger(byteLength, 'GrowableRange.resize', 'byteLength', 0, this.maximumBytes)
    if (byteLength > this.#capacity) this.#grow(byteLength)
    else if (byteLength < this.#byteLength) this.#shrink(byteLength)
    if (byteLength !== this.#byteLength) this.#description = undefined
    this.#byteLength = byteLength
    return this
  }

  get [memoryProtocol](): MemoryRange {
    this.#requireUsable()
    const context = this.#context
    this.#description ??= Object.freeze({
      version: 0,
      address: this.#pieces.address,
      byteLength: this.#byteLength,
      deviceOrdinal: context.device.ordinal,
      context: context._handle,
    })
    return this.#description
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { byteLength, capacity, maximumBytes } = this
    const { address } = this.#pieces
    return { address, byteLength, capacity, maximumBytes }
  }

  /** Frees everything when the work of the devices with access completes. */
  protected release(): void {
    if (this.#leak !== undefined) forgetLeak(this, this.#leak.bytes, true)
    this.#capacity = 0
    if (processIsEnding()) return
    const pieces = this.#pieces
    const what = 'A GrowableRange'
    afterUseOfMemory(what, pieces.address, pieces.byteLength, () => afterCapture(what, () => freeLate(what, pieces)))
  }

  #requireUsable(): void {
    this._requireAlive()
    this.#context._requireAlive()
  }

  #grow(byteLength: number): void {
    const start = this.#capacity
    const { words, byteLength: maximum, ends } = this.#pieces
    const wanted = roundUp(Math.max(byteLength - start, this.#step), this.#granularity)
    const size = Math.min(wanted, maximum - start)
    // The driver refuses to map over pieces that the release thread is still unmapping.
    if (this.#hasShrunk) finishReleasesSync()
    this.#hasShrunk = false
    createAndMap(this.#properties, size, words, start, this.#grants)
    this.#capacity = start + size
    ends.push(this.#capacity)
    this.#countCapacity()
  }

  #shrink(byteLength: number): void {
    const { address, ends, users } = this.#pieces
    const kept = ends.findIndex((_, index) => (ends[index - 1] ?? 0) >= byteLength)
    if (kept < 0) return
    // A call on a native thread uses these pieces. The next shrink frees them.
    const from = address + BigInt(byteLength)
    if (isAnythingInUse() && whenMemoryUnused(from, this.#capacity - byteLength) !== undefined) return
    const what = 'A piece of a GrowableRange'
    const mappings = mappingsOf(address, ends, kept)
    this.#capacity = ends.at(-1) ?? 0
    this.#hasShrunk = true
    this.#countCapacity()
    for (const user of users) user._addChild()
    afterCapture(what, () => unmapLate(what, mappings, users, () => undefined))
  }

  #countCapacity(): void {
    if (this.#leak !== undefined) changeLeakBytes(this, this.#leak, this.#context._pressureOf(this.#capacity))
  }
}

/** Removes the pieces from index `first` on. Returns their mappings. */
function mappingsOf(address: bigint, ends: number[], first: number): Mapping[] {
  const before = ends[first - 1] ?? 0
  return ends.splice(first).map((end, index, all) => {
    const start = all[index - 1] ?? before
    return { address: address + BigInt(start), byteLength: end - start }
  })
}

/** Frees everything when the devices' work completes, after the pieces that are already being freed. */
function freeLate(what: string, { address, byteLength, ends, users }: Pieces): void {
  unmapLate(what, mappingsOf(address, ends, 0), users, () => freeAddresses(address, byteLength))
}

/** Properties and access rights of new pieces. */
interface Setup {
  readonly properties: ResolvedProperties
  readonly grants: WrittenGrants
  readonly granularity: number
}

/** The setup without options, one per context. */
const defaultSetups = new WeakMap<Context, Setup>()

function defaultSetup(place: DevicePlace): Setup {
  let setup = defaultSetups.get(place.context)
  if (setup === undefined) {
    setup = setUp(place, {}, 'GrowableRange.reserve')
    defaultSetups.set(place.context, setup)
  }
  return setup
}

function setUp(place: DevicePlace, options: Partial<GrowableOptions>, api: string): Setup {
  const properties = propertiesAt(place, options, api)
  const grants = writeGrants([
    { place, access: 'readWrite' },
    ...resolveGrants(options.access === undefined ? [] : options.access, api),
  ])
  return { properties, grants, granularity: granularityOf(properties) }
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit
}

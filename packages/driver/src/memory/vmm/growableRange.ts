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

/** How growable memory is reserved. */
export interface GrowableOptions extends AllocationOptions {
  /** Bytes it can grow to, rounded up to the granularity. Addresses are reserved for all of them, memory is not. */
  readonly maximumBytes: number
  /** The least number of bytes it grows by. Default: the recommended granularity. */
  readonly stepBytes?: number | undefined
  /** Who may use it besides the device it lies on. */
  readonly access?: readonly AccessGrant[] | undefined
}

/** The keys of {@link GrowableOptions}. */
export const growableKeys: OptionKeys<GrowableOptions> = {
  maximumBytes: true,
  stepBytes: true,
  access: true,
  ...allocationKeys,
}

/** What has to be freed. It does not refer to the range, which may be collected before. */
interface Pieces {
  readonly address: bigint
  readonly words: U64Halves
  /** Bytes that addresses are reserved for. */
  readonly byteLength: number
  /** Where each piece of memory ends, in bytes from the start. Each begins where the one before it ends. */
  readonly ends: number[]
  /** Contexts whose work may use the memory: it has to end before the memory is unmapped. */
  readonly users: readonly Context[]
}

/**
 * Memory of a device that grows and shrinks in place: its address never changes and nothing is copied. Addresses are
 * reserved for the most there may ever be, and each growth maps another piece of physical memory behind the last.
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
  /** What each piece is created with, and who may use it. */
  readonly #properties: ResolvedProperties
  readonly #grants: WrittenGrants
  readonly #granularity: number
  readonly #step: number
  #capacity = 0
  #byteLength = 0
  /** The answer of the memory protocol for the present length. */
  #description: MemoryRange | undefined
  /** What the collector knows of this object, once it outlives the turn it was made in. */
  #leak: Leak | undefined
  /** Whether pieces may still be mapped where it grows next. */
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
   * Reserves the addresses (`cuMemAddressReserve`). There is no memory until {@link resize}.
   * @param device the device the memory will lie on, and which may read and write it.
   * @throws TypeError, RangeError; StatusError when there are not as many addresses.
   */
  static reserve(device: DeviceOrContext, options: GrowableOptions): GrowableRange {
    const api = 'GrowableRange.reserve'
    requireOptions(options, api, growableKeys)
    return GrowableRange._reserve(device, options, api)
  }

  /** @internal The same for another function, which errors name. */
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

  /** The first address, which never changes. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#pieces.address
  }

  /** Bytes in use: what {@link resize} was called with. */
  get byteLength(): number {
    return this.#byteLength
  }

  /** Bytes that memory is mapped for. */
  get capacity(): number {
    return this.#capacity
  }

  /** Bytes it can grow to. */
  get maximumBytes(): number {
    return this.#pieces.byteLength
  }

  /**
   * Grows or shrinks it to a number of bytes (`cuMemCreate`, `cuMemMap`, `cuMemSetAccess`; `cuMemUnmap`). What is added
   * has no defined contents. Shrinking frees whole pieces that are not needed any more, on a native thread when the
   * work of the devices with access has ended; an error of that becomes a process warning.
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

  /** Frees everything when the work of the devices with access has ended. */
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
    // The driver refuses to map over pieces that the release thread still unmaps.
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
    // A call on a native thread works with it: what is not needed any more goes when the range shrinks the next time.
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

/** Takes the pieces from one on out of the list of their ends. */
function mappingsOf(address: bigint, ends: number[], first: number): Mapping[] {
  const before = ends[first - 1] ?? 0
  return ends.splice(first).map((end, index, all) => {
    const start = all[index - 1] ?? before
    return { address: address + BigInt(start), byteLength: end - start }
  })
}

/** Frees everything when the work of the devices has ended, and behind pieces that go already. */
function freeLate(what: string, { address, byteLength, ends, users }: Pieces): void {
  unmapLate(what, mappingsOf(address, ends, 0), users, () => freeAddresses(address, byteLength))
}

/** What pieces are created with, and who may use them. */
interface Setup {
  readonly properties: ResolvedProperties
  readonly grants: WrittenGrants
  readonly granularity: number
}

/** The setup without options, once for each context. */
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

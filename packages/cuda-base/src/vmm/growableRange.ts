import { type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import { requireInteger, requireOptions } from '../checks.js'
import type { Context, DeviceWithContext } from '../context.js'
import {
  forgetLeak,
  processIsEnding,
  Resource,
  reclaimLater,
  type ShortLived,
  throwFirst,
  watchForLeak,
  watchLater,
} from '../lifetime.js'
import { startDriver } from '../start.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'
import { type AccessGrant, resolveGrants, type WrittenGrants, writeGrants } from './access.js'
import { freeAddresses, reservationUnit, reserveAddresses } from './addresses.js'
import { resolveDevice } from './location.js'
import { mapFresh, unmapFresh } from './mappingCalls.js'
import {
  type AllocationOptions,
  granularityCode,
  granularityOf,
  isPlain,
  type ResolvedProperties,
  resolveProperties,
} from './properties.js'
import { unmapOffThread } from './unmapLater.js'

/** How growable memory is made. */
export interface GrowableOptions extends AllocationOptions {
  /** Bytes it can grow to; rounded up to the granularity. Addresses are reserved for all of them, memory is not. */
  readonly maximumBytes: number
  /** Bytes that it grows by at least. Default: the recommended granularity. */
  readonly stepBytes?: number | undefined
  /** Further devices that may use it. */
  readonly access?: readonly AccessGrant[] | undefined
}

/** What there is to give back. It does not refer to the range, which the collector may take before. */
interface Holding {
  readonly address: bigint
  readonly words: U64Halves
  /** Bytes that addresses are reserved for. */
  readonly byteLength: number
  /** Where each piece of memory ends, in bytes from the start; the first begins there, each other where one ends. */
  readonly ends: number[]
  /** Contexts whose work may use the memory: it has to end before the memory goes. */
  readonly users: readonly Context[]
}

/** Memory of a device that grows and shrinks in place: its address never changes and nothing is copied. */
export class GrowableRange extends Resource implements MemoryLike, ShortLived {
  protected readonly kind = 'GrowableRange'
  readonly #context: Context
  readonly #holding: Holding
  /** What each piece is made with, and who may use it. */
  readonly #properties: ResolvedProperties
  readonly #grants: WrittenGrants
  readonly #granularity: number
  readonly #step: number
  #capacity = 0
  #byteLength = 0
  /** What the memory protocol gave, for the present length. */
  #description: MemoryRange | undefined
  #isWatched = false

  private constructor(
    context: Context,
    address: bigint,
    byteLength: number,
    step: number,
    granularity: number,
    properties: ResolvedProperties,
    grants: WrittenGrants,
  ) {
    super()
    const { users } = grants
    this.#context = context
    this.#holding = { address, words: halvesOf(address), byteLength, ends: [], users }
    this.#step = step
    this.#granularity = granularity
    this.#properties = properties
    this.#grants = grants
    for (const user of users) user._addChild()
    watchLater(this)
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const holding = this.#holding
    const what = `A GrowableRange of ${holding.byteLength} bytes`
    watchForLeak(this, what, () => {
      reclaimLater(what, giveBackOffThread(holding))
      return 'its memory is freed when the work that uses it has ended'
    })
  }

  /** Reserves the addresses. @throws RangeError, TypeError, StatusError */
  static reserve(device: DeviceWithContext, options: GrowableOptions): GrowableRange {
    requireOptions(options, 'options', '{ maximumBytes }')
    startDriver()
    const { context } = resolveDevice(device, 'device')
    const isUsual = options.access === undefined && isPlain(options)
    const { properties, grants, granularity } = isUsual ? plainPlan(context, device) : makePlan(device, options)
    const step = options.stepBytes ?? granularityOf(properties, granularityCode('recommended'))
    requireInteger(step, 'stepBytes', 1, Number.MAX_SAFE_INTEGER)
    requireInteger(options.maximumBytes, 'maximumBytes', 1, 2 ** 47)
    const byteLength = roundUp(options.maximumBytes, Math.max(granularity, reservationUnit))
    const rounded = roundUp(step, granularity)
    const address = reserveAddresses(byteLength)
    return new GrowableRange(context, address, byteLength, rounded, granularity, properties, grants)
  }

  /** The first address; the same for ever. @throws DisposedError */
  get address(): bigint {
    this.#requireUsable()
    return this.#holding.address
  }

  /** Bytes in use, as {@link resize} was told. */
  get byteLength(): number {
    return this.#byteLength
  }

  /** Bytes that memory is mapped for. */
  get capacity(): number {
    return this.#capacity
  }

  /** Bytes it can grow to. */
  get maximumBytes(): number {
    return this.#holding.byteLength
  }

  /**
   * Grows or shrinks it. What is beyond the old length has no defined contents. Shrinking gives whole pieces back that
   * are not needed any more, and blocks until the work of the device has ended.
   * @throws RangeError above `maximumBytes`; StatusError when memory is short, with nothing changed.
   */
  resize(byteLength: number): this {
    this.#requireUsable()
    requireInteger(byteLength, 'byteLength', 0, this.maximumBytes)
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
      address: this.#holding.address,
      byteLength: this.#byteLength,
      deviceOrdinal: context.device.ordinal,
      context: context._handle,
    })
    return this.#description
  }

  /** Gives everything back without blocking the thread while work still uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this._disposed) return
    this._disposed = true
    if (this.#isWatched) forgetLeak(this)
    this.#capacity = 0
    await giveBackOffThread(this.#holding)
  }

  protected release(): void {
    if (this.#isWatched) forgetLeak(this)
    this.#capacity = 0
    if (!processIsEnding()) giveBack(this.#holding)
  }

  #requireUsable(): void {
    this._requireAlive()
    this.#context._requireAlive()
  }

  #grow(byteLength: number): void {
    const start = this.#capacity
    const { words, byteLength: most, ends } = this.#holding
    const wanted = roundUp(Math.max(byteLength - start, this.#step), this.#granularity)
    const size = Math.min(wanted, most - start)
    mapFresh(this.#properties, size, words, start, this.#grants)
    this.#capacity = start + size
    ends.push(this.#capacity)
  }

  #shrink(byteLength: number): void {
    const { words, ends, users } = this.#holding
    let start = ends.at(-2) ?? 0
    if (ends.length === 0 || start < byteLength) return
    waitFor(users)
    while (ends.length > 0 && start >= byteLength) {
      unmapFresh(words, start, this.#capacity - start)
      ends.pop()
      this.#capacity = start
      start = ends.at(-2) ?? 0
    }
  }
}

/** The driver does not wait: memory that goes while a kernel uses it loses the context. */
function waitFor(users: readonly Context[]): void {
  for (const context of users) context._release('ctxSynchronize')
}

/** Whatever fails, the rest goes, and the first failure is thrown. */
function giveBack({ address, words, byteLength, ends, users }: Holding): void {
  const failures: unknown[] = []
  const attempt = (release: () => void): void => {
    try {
      release()
    } catch (error) {
      failures.push(error)
    }
  }
  if (ends.length > 0) attempt(() => waitFor(users))
  let start = 0
  for (const end of ends.splice(0)) {
    try {
      unmapFresh(words, start, end - start)
    } catch (error) {
      failures.push(error)
    }
    start = end
  }
  attempt(() => freeAddresses(address, byteLength))
  for (const user of users) attempt(() => user._removeChild())
  throwFirst('A GrowableRange', failures)
}

/** The same on a native thread, because it waits for the devices. */
async function giveBackOffThread({ address, byteLength, ends, users }: Holding): Promise<void> {
  const mappings = ends.splice(0).map((end, index, all) => {
    const start = all[index - 1] ?? 0
    return { address: address + BigInt(start), byteLength: end - start }
  })
  await unmapOffThread(mappings, users, () => freeAddresses(address, byteLength))
}

/** What its pieces are made with, and who may use them. */
interface Plan {
  readonly properties: ResolvedProperties
  readonly grants: WrittenGrants
  readonly granularity: number
}

/** The plan where nothing special is asked for, made once for each context. */
const plainPlans = new WeakMap<Context, Plan>()

function plainPlan(context: Context, device: DeviceWithContext): Plan {
  let plan = plainPlans.get(context)
  if (plan === undefined) {
    plan = makePlan(device, {})
    plainPlans.set(context, plan)
  }
  return plan
}

function makePlan(device: DeviceWithContext, options: Partial<GrowableOptions>): Plan {
  const { handleTypes, gpuDirectRdma, compressible, access = [] } = options
  const properties = resolveProperties(device, { handleTypes, gpuDirectRdma, compressible })
  const grants = writeGrants([...resolveGrants([{ place: device, access: 'readWrite' }]), ...resolveGrants(access)])
  return { properties, grants, granularity: granularityOf(properties) }
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit
}

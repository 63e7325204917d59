import { type CUmemGenericAllocationHandle, CUmemLocationType, cuMemMap, cuMemUnmap } from '@shoal/cuda-sys/driver'
import { describeValue, type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import { requireOptions } from '../checks.js'
import type { Context } from '../context.js'
import { check, checkRelease } from '../errors.js'
import {
  forgetLeak,
  giveBackUnused,
  processIsEnding,
  Resource,
  reclaimLater,
  type ShortLived,
  watchForLeak,
  watchLater,
} from '../lifetime.js'
import {
  type AccessGrant,
  getAccess,
  type MemoryAccess,
  type ResolvedGrant,
  resolveGrants,
  setAccess,
  type WrittenGrants,
  writeGrants,
} from './access.js'
import type { AddressRange } from './addressRange.js'
import { type MemoryPlace, resolvePlace } from './location.js'
import { requireMultiple, requirePart } from './properties.js'
import { unmapOffThread } from './unmapLater.js'

/** What can be mapped: physical memory or a multicast object. */
export interface Mappable {
  readonly handle: CUmemGenericAllocationHandle
  readonly byteLength: number
  /** @internal Contexts of the devices it lies on: they get access unless told otherwise. Empty for host memory. */
  readonly _contexts: readonly Context[]
  /** @internal Bytes that what is mapped, and where, must be a multiple of. */
  readonly _granularity: number
  /** @internal @throws RangeError while it cannot be mapped yet. */
  _requireComplete?(what: string): void
}

/** What is mapped where. */
export interface MapOptions {
  /** Bytes from the start of the range. Default: 0. */
  readonly offset?: number | undefined
  /** Bytes from the start of the memory. Drivers take only 0 so far: `CUDA_ERROR_NOT_SUPPORTED`. Default: 0. */
  readonly memoryOffset?: number | undefined
  /** Default: all of the memory from `memoryOffset` on. Drivers take no less so far: `CUDA_ERROR_NOT_SUPPORTED`. */
  readonly byteLength?: number | undefined
  /** Who may use it. Default: the device it lies on, for reading and writing. */
  readonly access?: readonly AccessGrant[] | undefined
}

/** Physical memory at an address. Devices with access use it like any other memory. */
export class MappedRange extends Resource implements MemoryLike, ShortLived {
  protected readonly kind = 'MappedRange'
  readonly range: AddressRange
  readonly memory: Mappable
  /** Bytes from the start of the range. */
  readonly offset: number
  readonly byteLength: number
  readonly #address: bigint
  /** The context it counts as memory of; none for host memory. */
  readonly #context: Context | undefined
  /** Contexts whose work may use the memory: it has to end before the memory goes. */
  #users: readonly Context[]
  #isWatched = false
  /** What the collector finds of it, once it is watched. */
  #left: { users: readonly Context[] } | undefined
  #description: MemoryRange | undefined

  private constructor(
    range: AddressRange,
    memory: Mappable,
    address: bigint,
    offset: number,
    byteLength: number,
    users: readonly Context[],
  ) {
    super()
    this.range = range
    this.memory = memory
    this.offset = offset
    this.byteLength = byteLength
    this.#address = address
    this.#context = memory._contexts[0]
    this.#users = users
    for (const context of users) context._addChild()
    watchLater(this)
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const { range, offset, byteLength } = this
    const address = this.#address
    const left = { users: this.#users }
    this.#left = left
    watchForLeak(this, `A MappedRange of ${byteLength} bytes`, () => {
      reclaimLater(
        `A MappedRange of ${byteLength} bytes`,
        unmapOffThread([{ address, byteLength }], left.users, () => range._unclaim(offset)),
      )
      return 'it is unmapped when the work that uses it has ended'
    })
  }

  /** @internal See `AddressRange.map`. */
  static _map(range: AddressRange, start: bigint, memory: Mappable, options: MapOptions): MappedRange {
    requireOptions(options, 'options', '{ offset }')
    const { handle, granularity } = requireMappable(memory)
    const part = requirePart(options.memoryOffset, options.byteLength, memory.byteLength, granularity)
    const { memoryOffset, byteLength } = part
    const offset = requireMultiple(options.offset ?? 0, 'offset', granularity, 0)
    const grants = options.access === undefined ? ownAccess(memory) : writeGrants(resolveGrants(options.access))
    const address = start + BigInt(offset)
    range._claim(offset, byteLength)
    try {
      check(cuMemMap(address, byteLength, memoryOffset, handle, 0), 'cuMemMap')
    } catch (error) {
      range._unclaim(offset)
      throw error
    }
    try {
      setAccess(address, byteLength, grants)
    } catch (error) {
      giveBackUnused('A MappedRange', () => checkRelease(cuMemUnmap(address, byteLength), 'cuMemUnmap'))
      range._unclaim(offset)
      throw error
    }
    return new MappedRange(range, memory, address, offset, byteLength, grants.users)
  }

  /** The first address. @throws DisposedError */
  get address(): bigint {
    this._requireAlive()
    this.#context?._requireAlive()
    return this.#address
  }

  /**
   * Changes who may use the memory (`cuMemSetAccess`). Places that are not named keep what they have.
   * @throws StatusError for a device that cannot reach the memory.
   */
  setAccess(places: MemoryPlace | readonly MemoryPlace[], access: MemoryAccess): void {
    const { address } = this
    const list = (Array.isArray(places) ? places : [places]) as readonly MemoryPlace[]
    const grants = writeGrants(resolveGrants(list.map((place) => ({ place, access }))))
    if (access !== 'readWrite') this.#wait()
    setAccess(address, this.byteLength, grants)
    this.#note(grants.users)
  }

  /** What a device may do with the memory (`cuMemGetAccess`). */
  getAccess(place: MemoryPlace): MemoryAccess {
    return getAccess(this.address, resolvePlace(place, 'place'))
  }

  get [memoryProtocol](): MemoryRange {
    const { address } = this
    const context = this.#context
    this.#description ??= Object.freeze({
      version: 0,
      address,
      byteLength: this.byteLength,
      deviceOrdinal: context === undefined ? -1 : context.device.ordinal,
      context: context?._handle ?? 0n,
    })
    return this.#description
  }

  /** Unmaps it without blocking the thread while work still uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this._disposed) return
    this._disposed = true
    if (this.#isWatched) forgetLeak(this)
    const { range, offset, byteLength } = this
    await unmapOffThread([{ address: this.#address, byteLength }], this.#users, () => range._unclaim(offset))
  }

  /** Unmaps it (`cuMemUnmap`): blocks until the work of the devices with access has ended. */
  protected release(): void {
    if (this.#isWatched) forgetLeak(this)
    if (processIsEnding()) return
    try {
      this.#wait()
    } catch (error) {
      giveBackUnused('A MappedRange', () => this.#unmap())
      throw error
    }
    this.#unmap()
  }

  #unmap(): void {
    try {
      checkRelease(cuMemUnmap(this.#address, this.byteLength), 'cuMemUnmap')
    } finally {
      for (const context of this.#users) context._removeChild()
      this.range._unclaim(this.offset)
    }
  }

  /** The driver does not wait: memory that goes while a kernel uses it loses the context. */
  #wait(): void {
    for (const context of this.#users) context._release('ctxSynchronize')
  }

  #note(users: readonly Context[]): void {
    for (const context of users) {
      if (this.#users.includes(context)) continue
      this.#users = [...this.#users, context]
      if (this.#left !== undefined) this.#left.users = this.#users
      context._addChild()
    }
  }
}

function requireMappable(memory: Mappable): { handle: CUmemGenericAllocationHandle; granularity: number } {
  if (typeof memory !== 'object' || memory === null || typeof memory._granularity !== 'number') {
    throw new TypeError(`memory must be PhysicalMemory or a MulticastObject, not ${describeValue(memory)}`)
  }
  const { handle } = memory
  memory._requireComplete?.('it is mapped')
  return { handle, granularity: memory._granularity }
}

/** What memory of one device alone is mapped with, unless told otherwise: for each mapping the same. */
const known = new WeakMap<Context, WrittenGrants>()

function ownAccess({ _contexts: contexts }: Mappable): WrittenGrants {
  const [first] = contexts
  if (first === undefined || contexts.length > 1) return writeGrants(contexts.map(readWriteOf))
  let grants = known.get(first)
  if (grants === undefined) {
    grants = writeGrants([readWriteOf(first)])
    known.set(first, grants)
  }
  return grants
}

function readWriteOf(context: Context): ResolvedGrant {
  const place = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id: context.device.ordinal, context }
  return { place, access: 'readWrite' }
}

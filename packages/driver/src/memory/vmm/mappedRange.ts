import { type CUmemGenericAllocationHandle, CUmemLocationType, cuMemMap, cuMemUnmap } from '@shoal/cuda-sys/driver'
import {
  loadedFrom,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  optionalOptions,
  otherCopy,
  propertyOf,
  requireInteger,
  requireMade,
  wrongType,
} from '@shoal/types'
import { afterCapture } from '../../core/context/capturing.js'
import { Context } from '../../core/context/context.js'
import { forgetReach } from '../../core/context/peers.js'
import { check, checkRelease } from '../../core/errors.js'
import { afterUseOfMemory } from '../../core/inUse.js'
import {
  forgetLeak,
  processIsEnding,
  Resource,
  releaseAfterFailure,
  type ShortLived,
  watchForLeak,
  watchLater,
} from '../../core/lifetime.js'
import { grantedRange } from '../buffers/reach.js'
import {
  type AccessGrant,
  getAccess,
  type MemoryAccess,
  type ResolvedGrant,
  resolveGrants,
  resolveSameAccess,
  setAccess,
  type WrittenGrants,
  writeGrants,
} from './access.js'
import type { AddressRange } from './addressRange.js'
import { type MemoryPlace, resolvePlace } from './location.js'
import { mappableOf } from './physicalMemory.js'
import { requireMultiple, requirePart } from './properties.js'
import { unmapLate } from './unmapLate.js'

/** An object that can be mapped: physical memory or a multicast object. */
export interface Mappable {
  readonly handle: CUmemGenericAllocationHandle
  readonly byteLength: number
  /** @internal Contexts of the memory's devices, which get access by default. Empty for host memory. */
  readonly _contexts: readonly Context[]
  /** @internal Granularity of sizes and offsets of mappings, in bytes. */
  readonly _granularity: number
  /** @internal Checks that the object can be mapped. @throws RangeError */
  _requireComplete?(api: string): void
}

/** Options of a mapping: part, position and access. */
export interface MapOptions {
  /** Offset in the range in bytes. Default: 0. */
  readonly offset?: number | undefined
  /**
   * Offset in the memory in bytes. Current drivers accept only 0 (otherwise `CUDA_ERROR_NOT_SUPPORTED`). Default: 0.
   */
  readonly memoryOffset?: number | undefined
  /**
   * Number of bytes. Default: the rest of the memory after `memoryOffset`, and current drivers accept nothing else
   * (`CUDA_ERROR_NOT_SUPPORTED`). Required for a raw handle.
   */
  readonly byteLength?: number | undefined
  /**
   * Access rights; with `[]` no place has access until `setAccess`. Default: `'readWrite'` for the memory's devices, no
   * access for host memory.
   */
  readonly access?: readonly AccessGrant[] | undefined
}

const mapKeys: OptionKeys<MapOptions> = { offset: true, memoryOffset: true, byteLength: true, access: true }

/**
 * Physical memory at an address, created by `AddressRange.map`. Devices with access use it like any other memory.
 * @example
 * using mapped = range.map(memory, { access: [] })
 * mapped.setAccess([first, second], 'readWrite')
 * console.log(mapped.getAccess(second)) // readWrite
 */
export class MappedRange extends Resource implements MemoryLike, ShortLived {
  protected readonly kind = 'MappedRange'
  /** The range of addresses with this mapping. */
  readonly range: AddressRange
  /** The mapped object. */
  readonly memory: Mappable
  /** Offset in the range in bytes. */
  readonly offset: number
  /** Size of the mapping in bytes. */
  readonly byteLength: number
  readonly #address: bigint
  /** The context of the memory; undefined for host memory. */
  readonly #context: Context | undefined
  /** Contexts whose work may use the memory. Unmapping waits for this work. */
  #users: readonly Context[]
  #isWatched = false
  /** State with which the leak watch unmaps the memory. */
  #watched: { users: readonly Context[] } | undefined
  #description: MemoryRange | undefined

  private constructor(
    range: AddressRange,
    memory: Mappable,
    address: bigint,
    offset: number,
    byteLength: number,
    users: readonly Context[],
  ) {
    requireMade(users, 'MappedRange', 'AddressRange.map', 'object')
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
    const watched = { users: this.#users }
    this.#watched = watched
    const what = `A MappedRange of ${byteLength} bytes`
    watchForLeak(this, what, () => {
      unmapLate(what, [{ address, byteLength }], watched.users, () => range._removeMapping(offset))
      return 'it is unmapped when the work that uses it has ended'
    })
  }

  /** @internal See `AddressRange.map`. */
  static _map(
    range: AddressRange,
    start: bigint,
    given: Mappable | bigint,
    options: MapOptions | undefined,
  ): MappedRange {
    const api = 'AddressRange.map'
    const chosen = optionalOptions(options, api, mapKeys)
    const memory = typeof given === 'bigint' ? ofRawHandle(given, chosen, api) : given
    const { handle, granularity } = requireMappable(memory, api)
    const part = requirePart(chosen.memoryOffset, chosen.byteLength, memory.byteLength, granularity, api)
    const { memoryOffset, byteLength } = part
    const offset = requireMultiple(chosen.offset === undefined ? 0 : chosen.offset, api, 'offset', granularity, 0)
    const { access } = chosen
    const grants = access === undefined ? defaultGrants(memory) : writeGrants(resolveGrants(access, api))
    const address = start + BigInt(offset)
    range._addMapping(api, offset, byteLength)
    try {
      check(cuMemMap(address, byteLength, memoryOffset, handle, 0), 'cuMemMap')
    } catch (error) {
      range._removeMapping(offset)
      throw error
    }
    try {
      setAccess(address, byteLength, grants)
    } catch (error) {
      releaseAfterFailure('A MappedRange', () => checkRelease(cuMemUnmap(address, byteLength), 'cuMemUnmap'))
      range._removeMapping(offset)
      throw error
    }
    return new MappedRange(range, memory, address, offset, byteLength, grants.users)
  }

  /** Address of the first byte. @throws DisposedError */
  get address(): bigint {
    this._requireAlive()
    this.#context?._requireAlive()
    return this.#address
  }

  /**
   * Sets the access of some places (`cuMemSetAccess`). Other places keep their access. Removing access blocks until the
   * work of the devices with access completes.
   * @throws TypeError, RangeError; StatusError for a device that cannot reach the memory; DisposedError
   */
  setAccess(places: MemoryPlace | readonly MemoryPlace[], access: MemoryAccess): void {
    const { address } = this
    const grants = writeGrants(resolveSameAccess(places, access, 'MappedRange.setAccess'))
    if (access !== 'readWrite') this.#wait()
    setAccess(address, this.byteLength, grants)
    if (access === 'none') forgetReach()
    this.#addUsers(grants.users)
  }

  /** Returns the access of a device or the host (`cuMemGetAccess`). @throws TypeError, RangeError; DisposedError */
  getAccess(place: MemoryPlace): MemoryAccess {
    return getAccess(this.address, resolvePlace(place, 'MappedRange.getAccess', 'place'))
  }

  get [memoryProtocol](): MemoryRange {
    const { address } = this
    const context = this.#context
    this.#description ??= grantedRange({
      address,
      byteLength: this.byteLength,
      deviceOrdinal: context === undefined ? -1 : context.device.ordinal,
      context: context?._handle ?? 0n,
    })
    return this.#description
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { byteLength } = this
    const deviceOrdinal = this.#context?.device.ordinal
    return {
      address: this.#address,
      byteLength,
      deviceOrdinal,
    }
  }

  /** Unmaps the memory when the work of the devices with access completes (`cuMemUnmap`). */
  protected release(): void {
    if (this.#isWatched) forgetLeak(this)
    if (processIsEnding()) return
    const what = 'A MappedRange'
    const { range, offset, byteLength } = this
    const address = this.#address
    const users = this.#users
    const unmap = (): void => unmapLate(what, [{ address, byteLength }], users, () => range._removeMapping(offset))
    afterUseOfMemory(what, address, byteLength, () => afterCapture(what, unmap))
  }

  /** Waits for the devices, because the driver does not: unmapping a running kernel's memory ends the context. */
  #wait(): void {
    for (const context of this.#users) context._release('ctxSynchronize')
  }

  #addUsers(users: readonly Context[]): void {
    for (const context of users) {
      if (this.#users.includes(context)) continue
      this.#users = [...this.#users, context]
      if (this.#watched !== undefined) this.#watched.users = this.#users
      context._addChild()
    }
  }
}

function ofRawHandle(handle: bigint, { byteLength, memoryOffset = 0 }: MapOptions, api: string): Mappable {
  requireInteger(memoryOffset, api, 'memoryOffset', 0)
  return mappableOf(handle, memoryOffset + requireInteger(byteLength, api, 'byteLength', 1), api)
}

function requireMappable(
  memory: Mappable,
  api: string,
): { readonly handle: CUmemGenericAllocationHandle; readonly granularity: number } {
  if (typeof memory !== 'object' || typeof propertyOf(memory, '_granularity') !== 'number') {
    throw wrongType(api, 'memory', 'PhysicalMemory or a MulticastObject', memory)
  }
  const [first] = memory._contexts
  if (first !== undefined && !(first instanceof Context)) {
    const { name } = memory.constructor
    throw (
      otherCopy(memory, api, 'memory', { name, [loadedFrom]: MappedRange[loadedFrom] }) ??
      wrongType(api, 'memory', name, memory)
    )
  }
  const { handle } = memory
  memory._requireComplete?.(api)
  return { handle, granularity: memory._granularity }
}

/** Default access to one device's memory, the same for each mapping. */
const grantsOfDevice = new WeakMap<Context, WrittenGrants>()

function defaultGrants({ _contexts: contexts }: Mappable): WrittenGrants {
  const [first] = contexts
  if (first === undefined || contexts.length > 1) return writeGrants(contexts.map(readWriteOf))
  let grants = grantsOfDevice.get(first)
  if (grants === undefined) {
    grants = writeGrants([readWriteOf(first)])
    grantsOfDevice.set(first, grants)
  }
  return grants
}

function readWriteOf(context: Context): ResolvedGrant {
  const place = { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id: context.device.ordinal, context }
  return { place, access: 'readWrite' }
}

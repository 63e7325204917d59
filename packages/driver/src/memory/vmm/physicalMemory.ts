import {
  CUmemAllocationProp,
  type CUmemGenericAllocationHandle,
  cuMemExportToShareableHandle,
  cuMemGetAllocationPropertiesFromHandle,
  cuMemImportFromShareableHandle,
  cuMemRelease,
  cuMemRetainAllocationHandle,
} from '@shoal/cuda-sys/driver'
import { optionalOptions, requireAddress, requireInteger, requireMade } from '@shoal/types'
import type { Context, DeviceOrContext } from '../../core/context/context.js'
import { visibleUuids } from '../../core/device/deviceUuid.js'
import { check, checkRelease } from '../../core/errors.js'
import {
  forgetLeak,
  processIsEnding,
  Resource,
  releaseAfterFailure,
  type ShortLived,
  watchForLeak,
  watchLater,
} from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { startDriver } from '../../core/start.js'
import { exportHandle, importHandle, requireHandle } from '../handles/exchange.js'
import { type HandleKind, platformHandleKind } from '../handles/handleKinds.js'
import type { ShareableHandle, ShareableHandleOf } from '../handles/handles.js'
import {
  locationOf,
  type MemoryLocation,
  type MemoryPlace,
  primaryContextAt,
  resolveDevice,
  resolvePlace,
} from './location.js'
import type { Mappable } from './mappedRange.js'
import { createMemory } from './mappingCalls.js'
import {
  type AllocationProperties,
  granularityFor,
  granularityOf,
  type PhysicalMemoryOptions,
  physicalMemoryKeys,
  propertiesAt,
  readProperties,
  requireMultiple,
  resolveProperties,
} from './properties.js'

/**
 * Memory without an address. Map it into an `AddressRange`, once or several times, to use it. `dispose()` gives up this
 * handle of it; the memory is freed when nothing maps it and no other handle is left.
 * @example
 * using memory = PhysicalMemory.create(device, allocationGranularity(device))
 * using range = AddressRange.reserve(memory.byteLength)
 * using mapped = range.map(memory)
 */
export class PhysicalMemory extends Resource implements ShortLived {
  protected readonly kind = 'PhysicalMemory'
  /** Size in bytes. */
  readonly byteLength: number
  /** @internal The context of the device that uses it; none for host memory. */
  readonly _contexts: readonly Context[]
  /** @internal */
  readonly _granularity: number
  /** @internal The device it lies on. Imported memory may be for the use of another one. */
  readonly _deviceOrdinal: number | undefined
  #isWatched = false
  #pressure = 0
  /** Calls on native threads that use the handle. It is released when they have ended. */
  #pendingCalls = 0
  readonly #handle: CUmemGenericAllocationHandle

  private constructor(
    handle: CUmemGenericAllocationHandle,
    byteLength: number,
    granularity: number,
    context: Context | undefined,
    deviceOrdinal: number | undefined,
  ) {
    requireMade(granularity, 'PhysicalMemory', 'PhysicalMemory.create', 'number')
    super()
    this.#handle = handle
    this.byteLength = byteLength
    this._granularity = granularity
    this._deviceOrdinal = deviceOrdinal
    this._contexts = context === undefined ? [] : [context]
    context?._addChild()
    watchLater(this)
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const handle = this.#handle
    const [context] = this._contexts
    const what = `PhysicalMemory of ${this.byteLength} bytes`
    const reclaim = (): string => {
      releaseHandle(handle, context)
      return 'it is freed as soon as nothing maps it'
    }
    this.#pressure = context === undefined ? this.byteLength : context._pressureOf(this.byteLength)
    watchForLeak(this, what, reclaim, 'dispose()', this.#pressure)
  }

  /**
   * Makes physical memory (`cuMemCreate`).
   * @param place a device, a context, `'host'` or `{ hostNode }`.
   * @param byteLength a multiple of `allocationGranularity(place, options)`.
   * @throws TypeError; RangeError for another length; StatusError when there is not enough memory.
   */
  static create(place: MemoryPlace, byteLength: number, options?: PhysicalMemoryOptions): PhysicalMemory {
    return PhysicalMemory._create(place, byteLength, options, 'PhysicalMemory.create')
  }

  /** @internal The same for another function, which errors name. */
  static _create(
    place: MemoryPlace,
    byteLength: number,
    options: PhysicalMemoryOptions | undefined,
    api: string,
  ): PhysicalMemory {
    const chosen = optionalOptions(options, api, physicalMemoryKeys)
    startDriver()
    const properties = resolveProperties(place, chosen, api)
    const granularity = granularityOf(properties)
    requireMultiple(byteLength, api, 'byteLength', granularity)
    createMemory(properties, byteLength)
    const handle = scratch().u64[0] as CUmemGenericAllocationHandle
    const { context } = properties.place
    return new PhysicalMemory(handle, byteLength, granularity, context, context?.device.ordinal)
  }

  /**
   * Another handle of the physical memory behind a mapped address (`cuMemRetainAllocationHandle`).
   * @param place where it lies.
   * @param byteLength its size, which the driver does not tell.
   * @throws TypeError; RangeError when it lies elsewhere; StatusError for an address where nothing is mapped.
   */
  static retain(place: MemoryPlace, address: bigint, byteLength: number): PhysicalMemory {
    const api = 'PhysicalMemory.retain'
    startDriver()
    const resolved = resolvePlace(place, api, 'place')
    requireAddress(address, api, 'address')
    requireInteger(byteLength, api, 'byteLength', 1)
    const out = scratch()
    check(cuMemRetainAllocationHandle(out, address), 'cuMemRetainAllocationHandle')
    const handle = out.u64[0] as CUmemGenericAllocationHandle
    return releasedOnError(handle, () => {
      const struct = structOf(handle)
      requireLocation(readProperties(struct).location, locationOf(resolved.type, resolved.id), api)
      const granularity = granularityFor(struct)
      requireMultiple(byteLength, api, 'byteLength', granularity)
      const { context } = resolved
      return new PhysicalMemory(handle, byteLength, granularity, context, context?.device.ordinal)
    })
  }

  /**
   * Memory that this process or another one exported (`cuMemImportFromShareableHandle`). The handle stays the caller's
   * to dispose of.
   * @param device the device that will use it. It may be another one than the memory lies on.
   * @throws TypeError for a handle of something else; RangeError for a size that memory of a device cannot have;
   * FeatureNotSupportedError when it lies on a device that this process does not see; StatusError for a handle that the
   * driver refuses.
   */
  static import(device: DeviceOrContext, handle: ShareableHandle<'memory'>): PhysicalMemory {
    const api = 'PhysicalMemory.import'
    startDriver()
    const place = resolveDevice(device, api)
    const granularity = granularityOf(propertiesAt(place, {}, api))
    requireHandle(handle, api, 'memory')
    const { byteLength, deviceUuid } = handle
    requireMultiple(byteLength, api, 'handle.byteLength', granularity)
    const imported = importHandle(handle, api, 'memory', (from, kind) => {
      const out = scratch()
      check(cuMemImportFromShareableHandle(out, from, kind), 'cuMemImportFromShareableHandle')
      return out.u64[0] as CUmemGenericAllocationHandle
    })
    return releasedOnError(imported, () => {
      const deviceOrdinal = deviceUuid === undefined ? deviceOrdinalOf(imported) : visibleUuids().indexOf(deviceUuid)
      return new PhysicalMemory(imported, byteLength, granularity, place.context, deviceOrdinal)
    })
  }

  /** The `CUmemGenericAllocationHandle`. @throws DisposedError */
  get handle(): CUmemGenericAllocationHandle {
    this._requireAlive()
    this._contexts[0]?._requireAlive()
    return this.#handle
  }

  /** What the driver says it is (`cuMemGetAllocationPropertiesFromHandle`). @throws DisposedError */
  get properties(): AllocationProperties {
    return readProperties(structOf(this.handle))
  }

  /**
   * A handle that another process can import (`cuMemExportToShareableHandle`). It is the caller's to dispose of.
   * @param kind one of the `handleTypes` the memory was made with. Default: the platform's own.
   * @throws TypeError; StatusError when the memory was not made with this kind; DisposedError
   */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'memory'> {
    const { handle, byteLength, _deviceOrdinal: deviceOrdinal } = this
    const handleTypes = (): readonly HandleKind[] => this.properties.handleTypes
    const thing = { content: 'memory', byteLength, deviceOrdinal, handleTypes } as const
    return exportHandle(kind, 'PhysicalMemory.export', thing, (out, code) =>
      check(cuMemExportToShareableHandle(out, handle, code, 0), 'cuMemExportToShareableHandle'),
    )
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { byteLength, _deviceOrdinal: deviceOrdinal } = this
    return { byteLength, deviceOrdinal }
  }

  protected release(): void {
    if (this.#isWatched) forgetLeak(this, this.#pressure)
    if (!processIsEnding() && this.#pendingCalls === 0) releaseHandle(this.#handle, this._contexts[0])
  }

  /** @internal A call on a native thread uses the handle from now on. */
  _hold(): void {
    this.#pendingCalls += 1
  }

  /** @internal That call has ended. */
  _endHold(): void {
    this.#pendingCalls -= 1
    if (this.disposed && this.#pendingCalls === 0) releaseHandle(this.#handle, this._contexts[0])
  }
}

function structOf(handle: CUmemGenericAllocationHandle): Uint8Array {
  const struct = CUmemAllocationProp.allocate()
  check(cuMemGetAllocationPropertiesFromHandle(struct, handle), 'cuMemGetAllocationPropertiesFromHandle')
  return struct
}

/** The device that memory lies on, asked of the driver; undefined for host memory. @throws StatusError */
export function deviceOrdinalOf(handle: CUmemGenericAllocationHandle): number | undefined {
  const { location } = readProperties(structOf(handle))
  return location.type === 'device' ? location.deviceOrdinal : undefined
}

/**
 * Memory of this process by its raw handle, to be mapped: the driver says where it lies, the caller how large it is.
 * @throws TypeError, RangeError; StatusError for what is no handle of physical memory
 */
export function mappableOf(memory: bigint, byteLength: number, api: string): Mappable {
  const handle = requireAddress(memory, api, 'memory') as CUmemGenericAllocationHandle
  startDriver()
  const struct = structOf(handle)
  const { location } = readProperties(struct)
  const contexts = location.type === 'device' ? [primaryContextAt(location.deviceOrdinal)] : []
  return { handle, byteLength, _contexts: contexts, _granularity: granularityFor(struct) }
}

/** Makes an object of a handle, or releases the handle. */
function releasedOnError<T>(handle: CUmemGenericAllocationHandle, make: () => T): T {
  try {
    return make()
  } catch (error) {
    releaseAfterFailure('PhysicalMemory', () => checkRelease(cuMemRelease(handle), 'cuMemRelease'))
    throw error
  }
}

function releaseHandle(handle: CUmemGenericAllocationHandle, context: Context | undefined): void {
  try {
    checkRelease(cuMemRelease(handle), 'cuMemRelease')
  } finally {
    context?._removeChild()
  }
}

function requireLocation(actual: MemoryLocation, expected: MemoryLocation, api: string): void {
  // The driver says of memory made for the host as such that it lies on one of its nodes.
  const isAnyNode = expected.type === 'host' || (expected.type === 'host-node' && expected.node === 'current')
  if ((actual.type === 'host-node' && isAnyNode) || JSON.stringify(actual) === JSON.stringify(expected)) return
  const message = `${api}: place must be where the memory lies, on ${locationInWords(actual)}, not ${locationInWords(expected)}`
  throw new RangeError(message)
}

function locationInWords(location: MemoryLocation): string {
  if (location.type === 'device') return `device ${location.deviceOrdinal}`
  return location.type === 'host' ? 'the host' : `node ${location.node} of the host`
}

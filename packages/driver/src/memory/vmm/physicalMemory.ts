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
 * Device or host memory without an address. Map it into an `AddressRange`, once or several times, to use it.
 *
 * `dispose()` releases this handle. The driver frees the memory after its last mapping and its last handle.
 * @example
 * using memory = PhysicalMemory.create(device, allocationGranularity(device))
 * using range = AddressRange.reserve(memory.byteLength)
 * using mapped = range.map(memory)
 */
export class PhysicalMemory extends Resource implements ShortLived {
  protected readonly kind = 'PhysicalMemory'
  /** Size in bytes. */
  readonly byteLength: number
  /** @internal The context of the device that uses the memory; empty for host memory. */
  readonly _contexts: readonly Context[]
  /** @internal */
  readonly _granularity: number
  /** @internal Ordinal of the memory's device. Imported memory can be for another device. */
  readonly _deviceOrdinal: number | undefined
  #isWatched = false
  #pressure = 0
  /** Calls on native threads that use the handle. The handle is released after they return. */
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
   * Creates physical memory (`cuMemCreate`).
   * @param place a device, a context, `'host'` or `{ hostNode }`
   * @param byteLength a multiple of `allocationGranularity(place, options)`
   * @throws TypeError; RangeError for another length; StatusError when there is not enough memory
   */
  static create(place: MemoryPlace, byteLength: number, options?: PhysicalMemoryOptions): PhysicalMemory {
    return PhysicalMemory._create(place, byteLength, options, 'PhysicalMemory.create')
  }

  /** @internal Creates physical memory. Errors name the function `api`. */
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
   * Returns another handle of the physical memory at a mapped address (`cuMemRetainAllocationHandle`).
   * @param place the place of the memory
   * @param byteLength the size of the memory, which the driver does not report
   * @throws TypeError; RangeError when the memory is at another place; StatusError for an address without a mapping
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
   * Imports memory that this or another process exported (`cuMemImportFromShareableHandle`). The caller keeps owning
   * the handle.
   * @param device the device that will use the memory; the memory may be on another device
   * @throws TypeError for a handle of another kind of object; RangeError for an invalid size of device memory;
   * FeatureNotSupportedError when the memory is on a device that is not visible to this process; StatusError for a
   * handle that the driver refuses
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

  /** Properties that the driver reports (`cuMemGetAllocationPropertiesFromHandle`). @throws DisposedError */
  get properties(): AllocationProperties {
    return readProperties(structOf(this.handle))
  }

  /**
   * Exports a handle for another process (`cuMemExportToShareableHandle`). The caller disposes of the handle.
   * @param kind one of the memory's `handleTypes`. Default: the platform's own kind.
   * @throws TypeError; StatusError when the memory was not created with this kind; DisposedError
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

  /** @internal Keeps the handle for a call on a native thread. */
  _hold(): void {
    this.#pendingCalls += 1
  }

  /** @internal Ends {@link _hold}. */
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

/** Returns the device of memory, as the driver reports it; undefined for host memory. @throws StatusError */
export function deviceOrdinalOf(handle: CUmemGenericAllocationHandle): number | undefined {
  const { location } = readProperties(structOf(handle))
  return location.type === 'device' ? location.deviceOrdinal : undefined
}

/**
 * Returns this process's memory behind a raw handle, for mapping. The driver reports the location, the caller the size.
 * @throws TypeError, RangeError; StatusError for another handle
 */
export function mappableOf(memory: bigint, byteLength: number, api: string): Mappable {
  const handle = requireAddress(memory, api, 'memory') as CUmemGenericAllocationHandle
  startDriver()
  const struct = structOf(handle)
  const { location } = readProperties(struct)
  const contexts = location.type === 'device' ? [primaryContextAt(location.deviceOrdinal)] : []
  return { handle, byteLength, _contexts: contexts, _granularity: granularityFor(struct) }
}

/** Creates an object for a handle. Releases the handle on failure. */
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
  // For memory of the host in general, the driver reports one of the host's nodes.
  const isAnyNode = expected.type === 'host' || (expected.type === 'host-node' && expected.node === 'current')
  if ((actual.type === 'host-node' && isAnyNode) || JSON.stringify(actual) === JSON.stringify(expected)) return
  const message = `${api}: place must be where the memory lies, on ${locationInWords(actual)}, not ${locationInWords(expected)}`
  throw new RangeError(message)
}

function locationInWords(location: MemoryLocation): string {
  if (location.type === 'device') return `device ${location.deviceOrdinal}`
  return location.type === 'host' ? 'the host' : `node ${location.node} of the host`
}

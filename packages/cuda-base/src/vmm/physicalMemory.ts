import {
  CUmemAllocationProp,
  type CUmemGenericAllocationHandle,
  cuMemExportToShareableHandle,
  cuMemGetAllocationPropertiesFromHandle,
  cuMemImportFromShareableHandle,
  cuMemRelease,
  cuMemRetainAllocationHandle,
} from '@shoal/cuda-sys/driver'
import { requireAddress, requireInteger } from '../checks.js'
import type { Context, DeviceWithContext } from '../context.js'
import { check, checkRelease } from '../errors.js'
import {
  forgetLeak,
  giveBackUnused,
  processIsEnding,
  Resource,
  type ShortLived,
  watchForLeak,
  watchLater,
} from '../lifetime.js'
import { scratch } from '../native.js'
import { visibleUuids } from '../share/deviceUuid.js'
import { exportHandle, importHandle, requireHandle } from '../share/exchange.js'
import type { ShareableHandle, ShareableHandleOf } from '../share/handles.js'
import { startDriver } from '../start.js'
import { type HandleKind, platformHandleKind } from './handleKinds.js'
import { locationOf, type MemoryLocation, type MemoryPlace, resolveDevice, resolvePlace } from './location.js'
import { createMemory } from './mappingCalls.js'
import {
  type AllocationOptions,
  type AllocationProperties,
  granularityFor,
  granularityOf,
  readProperties,
  requireMultiple,
  resolveProperties,
} from './properties.js'

/** Memory without an address. Map it, once or several times, into an `AddressRange` to use it. */
export class PhysicalMemory extends Resource implements ShortLived {
  protected readonly kind = 'PhysicalMemory'
  readonly byteLength: number
  /** @internal The context of the device it lies on; none for host memory. */
  readonly _contexts: readonly Context[]
  /** @internal */
  readonly _granularity: number
  /** @internal Ordinal of the device it lies on, which for imported memory need not be the one that uses it. */
  readonly _device: number | undefined
  #isWatched = false
  readonly #handle: CUmemGenericAllocationHandle

  private constructor(
    handle: CUmemGenericAllocationHandle,
    byteLength: number,
    granularity: number,
    context: Context | undefined,
    device: number | undefined,
  ) {
    super()
    this.#handle = handle
    this.byteLength = byteLength
    this._granularity = granularity
    this._device = device
    this._contexts = context === undefined ? [] : [context]
    context?._addChild()
    watchLater(this)
  }

  /** @internal */
  _watch(): void {
    this.#isWatched = true
    const handle = this.#handle
    const [context] = this._contexts
    watchForLeak(this, `PhysicalMemory of ${this.byteLength} bytes`, () => {
      giveBack(handle, context)
      return 'it is freed as soon as nothing maps it'
    })
  }

  /**
   * Makes physical memory (`cuMemCreate`).
   * @param byteLength a multiple of `allocationGranularity(place, options)`.
   * @throws RangeError for another length, StatusError when there is not as much.
   */
  static create(place: MemoryPlace, byteLength: number, options: AllocationOptions = {}): PhysicalMemory {
    startDriver()
    const properties = resolveProperties(place, options)
    const granularity = granularityOf(properties)
    requireMultiple(byteLength, 'byteLength', granularity)
    createMemory(properties, byteLength)
    const handle = scratch().u64[0] as CUmemGenericAllocationHandle
    const { context } = properties.place
    return new PhysicalMemory(handle, byteLength, granularity, context, context?.device.ordinal)
  }

  /**
   * The physical memory behind a mapped address, once more (`cuMemRetainAllocationHandle`).
   * @param byteLength how much it is: the driver does not tell.
   * @param place where it lies.
   * @throws RangeError when it lies elsewhere, StatusError for an address where nothing is mapped.
   */
  static retain(address: bigint, byteLength: number, place: MemoryPlace): PhysicalMemory {
    requireAddress(address, 'address')
    startDriver()
    const resolved = resolvePlace(place, 'place')
    requireInteger(byteLength, 'byteLength', 1, Number.MAX_SAFE_INTEGER)
    const out = scratch()
    check(cuMemRetainAllocationHandle(out, address), 'cuMemRetainAllocationHandle')
    const handle = out.u64[0] as CUmemGenericAllocationHandle
    try {
      const memory = CUmemAllocationProp.allocate()
      check(cuMemGetAllocationPropertiesFromHandle(memory, handle), 'cuMemGetAllocationPropertiesFromHandle')
      requirePlace(readProperties(memory).location, locationOf(resolved.type, resolved.id))
      const granularity = granularityFor(memory)
      requireMultiple(byteLength, 'byteLength', granularity)
      const { context } = resolved
      return new PhysicalMemory(handle, byteLength, granularity, context, context?.device.ordinal)
    } catch (error) {
      giveBackUnused('PhysicalMemory', () => checkRelease(cuMemRelease(handle), 'cuMemRelease'))
      throw error
    }
  }

  /**
   * Memory that another process, or this one, exported (`cuMemImportFromShareableHandle`). The handle stays the
   * caller's: dispose of it afterwards.
   * @param device the device here that shall use it.
   * @throws TypeError for a handle of something else; RangeError for a size that memory of a device cannot have;
   * FeatureNotSupportedError when it lies on a device that this process does not see; StatusError for a handle that the
   * driver does not take.
   */
  static import(handle: ShareableHandle<'memory'>, device: DeviceWithContext): PhysicalMemory {
    startDriver()
    const { context } = resolveDevice(device, 'device')
    const properties = resolveProperties(device, {}, 'device')
    const granularity = granularityOf(properties)
    requireHandle(handle, 'memory')
    requireMultiple(handle.byteLength, 'byteLength of the handle', granularity)
    const imported = importHandle(handle, 'memory', (from, kind) => {
      const out = scratch()
      check(cuMemImportFromShareableHandle(out, from, kind), 'cuMemImportFromShareableHandle')
      return out.u64[0] as CUmemGenericAllocationHandle
    })
    const { deviceUuid: uuid } = handle
    const on = uuid === undefined ? deviceOf(imported) : visibleUuids().indexOf(uuid)
    return new PhysicalMemory(imported, handle.byteLength, granularity, context, on)
  }

  /** The `CUmemGenericAllocationHandle`. @throws DisposedError */
  get handle(): CUmemGenericAllocationHandle {
    this._requireAlive()
    this._contexts[0]?._requireAlive()
    return this.#handle
  }

  /** What the driver says it is (`cuMemGetAllocationPropertiesFromHandle`). */
  get properties(): AllocationProperties {
    return propertiesOf(this.handle)
  }

  /**
   * A handle another process can import (`cuMemExportToShareableHandle`). It is the caller's to dispose of.
   * @param kind one of the `handleTypes` the memory was made with. Default: the platform's own.
   * @throws StatusError when the memory was not made for it.
   */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'memory'> {
    const { handle } = this
    const made = (): readonly HandleKind[] => this.properties.handleTypes
    return exportHandle('memory', kind, this.byteLength, this._device, made, (out, code) =>
      check(cuMemExportToShareableHandle(out, handle, code, 0), 'cuMemExportToShareableHandle'),
    )
  }

  protected release(): void {
    if (this.#isWatched) forgetLeak(this)
    if (!processIsEnding()) giveBack(this.#handle, this._contexts[0])
  }
}

function propertiesOf(handle: CUmemGenericAllocationHandle): AllocationProperties {
  const memory = CUmemAllocationProp.allocate()
  check(cuMemGetAllocationPropertiesFromHandle(memory, handle), 'cuMemGetAllocationPropertiesFromHandle')
  return readProperties(memory)
}

/** Where imported memory lies whose handle does not say: undefined for memory of the host. Gives it back on failure. */
function deviceOf(handle: CUmemGenericAllocationHandle): number | undefined {
  try {
    const { location } = propertiesOf(handle)
    return location.type === 'device' ? location.device : undefined
  } catch (error) {
    giveBackUnused('PhysicalMemory', () => checkRelease(cuMemRelease(handle), 'cuMemRelease'))
    throw error
  }
}

function giveBack(handle: CUmemGenericAllocationHandle, context: Context | undefined): void {
  try {
    checkRelease(cuMemRelease(handle), 'cuMemRelease')
  } finally {
    context?._removeChild()
  }
}

function requirePlace(actual: MemoryLocation, wanted: MemoryLocation): void {
  // Memory made for the host as such is told to lie on one of its nodes.
  const isAnyNode = wanted.type === 'host' || (wanted.type === 'host-node' && wanted.node === 'current')
  if ((actual.type === 'host-node' && isAnyNode) || JSON.stringify(actual) === JSON.stringify(wanted)) return
  throw new RangeError(`the memory lies on ${describeLocation(actual)}, not on ${describeLocation(wanted)}`)
}

function describeLocation(location: MemoryLocation): string {
  if (location.type === 'device') return `device ${location.device}`
  return location.type === 'host' ? 'the host' : `node ${location.node} of the host`
}

import {
  CUmemAllocationProp,
  type CUmemGenericAllocationHandle,
  cuMemCreate,
  cuMemExportToShareableHandle,
  cuMemGetAllocationPropertiesFromHandle,
  cuMemImportFromShareableHandle,
  cuMemRelease,
  cuMemRetainAllocationHandle,
} from '@shoal/cuda-sys/driver'
import { describeValue } from '../checks.js'
import type { Context, DeviceWithContext } from '../context.js'
import { check, checkRelease } from '../errors.js'
import { forgetLeak, processIsEnding, Resource, watchForLeak } from '../lifetime.js'
import { scratch } from '../native.js'
import { exportHandle, importHandle } from '../share/exchange.js'
import type { ShareableHandle, ShareableHandleOf } from '../share/handles.js'
import { startDriver } from '../start.js'
import { type HandleKind, platformHandleKind } from './handleKinds.js'
import { type MemoryPlace, resolvePlace } from './location.js'
import {
  type AllocationOptions,
  type AllocationProperties,
  granularityOf,
  readProperties,
  requireMultiple,
  resolveProperties,
} from './properties.js'

/** Memory without an address. Map it, once or several times, into an `AddressRange` to use it. */
export class PhysicalMemory extends Resource {
  protected readonly kind = 'PhysicalMemory'
  readonly byteLength: number
  /** @internal The context of the device it lies on; none for host memory. */
  readonly _contexts: readonly Context[]
  readonly #handle: CUmemGenericAllocationHandle

  private constructor(handle: CUmemGenericAllocationHandle, byteLength: number, context: Context | undefined) {
    super()
    this.#handle = handle
    this.byteLength = byteLength
    this._contexts = context === undefined ? [] : [context]
    watchForLeak(this, `PhysicalMemory of ${byteLength} bytes`, () => {
      checkRelease(cuMemRelease(handle), 'cuMemRelease')
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
    requireMultiple(byteLength, 'byteLength', granularityOf(properties))
    const out = scratch()
    check(cuMemCreate(out, byteLength, properties.memory, 0), 'cuMemCreate')
    return new PhysicalMemory(out.u64[0] as CUmemGenericAllocationHandle, byteLength, properties.place.context)
  }

  /**
   * The physical memory behind a mapped address, once more (`cuMemRetainAllocationHandle`).
   * @param place where it lies; must be what the properties say.
   * @throws StatusError for an address where nothing is mapped.
   */
  static retain(address: bigint, byteLength: number, place: MemoryPlace): PhysicalMemory {
    if (typeof address !== 'bigint') throw new TypeError(`address must be a bigint, not ${describeValue(address)}`)
    startDriver()
    const { context } = resolvePlace(place, 'place')
    const out = scratch()
    check(cuMemRetainAllocationHandle(out, address), 'cuMemRetainAllocationHandle')
    return new PhysicalMemory(out.u64[0] as CUmemGenericAllocationHandle, byteLength, context)
  }

  /**
   * Memory that another process, or this one, exported (`cuMemImportFromShareableHandle`). The handle stays the
   * caller's: dispose of it afterwards.
   * @param device the device here that shall use it.
   * @throws TypeError for a handle of something else, StatusError for one that the driver does not take.
   */
  static import(handle: ShareableHandle<'memory'>, device: DeviceWithContext): PhysicalMemory {
    startDriver()
    const { context } = resolvePlace(device, 'device')
    const imported = importHandle(handle, 'memory', (from, kind) => {
      const out = scratch()
      check(cuMemImportFromShareableHandle(out, from, kind), 'cuMemImportFromShareableHandle')
      return out.u64[0] as CUmemGenericAllocationHandle
    })
    return new PhysicalMemory(imported, handle.byteLength, context)
  }

  /** The `CUmemGenericAllocationHandle`. @throws DisposedError */
  get handle(): CUmemGenericAllocationHandle {
    this._requireAlive()
    return this.#handle
  }

  /** What the driver says it is (`cuMemGetAllocationPropertiesFromHandle`). */
  get properties(): AllocationProperties {
    const memory = CUmemAllocationProp.allocate()
    check(cuMemGetAllocationPropertiesFromHandle(memory, this.handle), 'cuMemGetAllocationPropertiesFromHandle')
    return readProperties(memory)
  }

  /**
   * A handle another process can import (`cuMemExportToShareableHandle`). It is the caller's to dispose of.
   * @param kind one of the `handleTypes` the memory was made with. Default: the platform's own.
   * @throws StatusError when the memory was not made for it.
   */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'memory'> {
    const { handle } = this
    return exportHandle('memory', kind, this.byteLength, this._contexts[0]?.device.ordinal, (out, code) =>
      check(cuMemExportToShareableHandle(out, handle, code, 0), 'cuMemExportToShareableHandle'),
    )
  }

  protected release(): void {
    forgetLeak(this)
    if (!processIsEnding()) checkRelease(cuMemRelease(this.#handle), 'cuMemRelease')
  }
}

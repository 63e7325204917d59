import {
  type CUdevice,
  CUdevice_attribute,
  type CUdeviceptr,
  type CUmemGenericAllocationHandle,
  CUmulticastGranularity_flags,
  CUmulticastObjectProp,
  CUpointer_attribute,
  cuDeviceGet,
  cuDeviceGetAttribute,
  cuDeviceGetCount,
  cuMemExportToShareableHandle,
  cuMemImportFromShareableHandle,
  cuMemRelease,
  cuMulticastAddDevice,
  cuMulticastBindAddr,
  cuMulticastBindMem,
  cuMulticastCreate,
  cuMulticastGetGranularity,
  cuMulticastUnbind,
  cuPointerGetAttribute,
} from '@shoal/cuda-sys/driver'
import { describeValue, FeatureNotSupportedError, type MemoryLike, toMemoryRange } from '@shoal/types'
import { requireInteger, requireOptions } from '../checks.js'
import { type Context, contextOf, type DeviceWithContext } from '../context.js'
import { check, checkRelease, Status } from '../errors.js'
import { forgetLeak, processIsEnding, Resource, watchForLeak } from '../lifetime.js'
import { scratch } from '../native.js'
import { exportHandle, importHandle, requireHandle } from '../share/exchange.js'
import type { ShareableHandle, ShareableHandleOf } from '../share/handles.js'
import { driverVersion, startDriver } from '../start.js'
import {
  bindAs,
  type HandleKind,
  handleKindBits,
  handleKindsOf,
  makeForKinds,
  platformHandleKind,
} from '../vmm/handleKinds.js'
import { PhysicalMemory } from '../vmm/physicalMemory.js'
import { type Granularity, requireMultiple, requirePart } from '../vmm/properties.js'

/** What a multicast object is to be. */
export interface MulticastProperties {
  /** How many devices will be added. */
  readonly deviceCount: number
  /** A multiple of {@link multicastGranularity}. */
  readonly byteLength: number
  /** Kinds of handle it can be exported as. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** Bits of the driver's; none has a meaning so far, and drivers refuse others than 0. Default: 0. */
  readonly flags?: number | undefined
}

/** Which part of a multicast object and of the memory bound to it. */
export interface BindOptions {
  /** Bytes from the start of the multicast object. Default: 0. */
  readonly offset?: number | undefined
  /** Bytes from the start of the memory. Default: 0. */
  readonly memoryOffset?: number | undefined
  /** Default: all of the memory from `memoryOffset` on. */
  readonly byteLength?: number | undefined
}

interface Binding {
  readonly device: number | undefined
  readonly offset: number
  readonly byteLength: number
}

const firstVersion = 12010

/**
 * Refuses where there is no multicast, and says what is missing: the driver's version or the device's attribute.
 * @throws FeatureNotSupportedError
 */
export function requireMulticast(device?: DeviceWithContext): void {
  startDriver()
  const version = driverVersion()
  if (version.value < firstVersion) throw refusal(`the driver is for CUDA ${version}; they came with 12.1`)
  if (device !== undefined && !hasMulticast(device.handle)) {
    throw refusal(`device ${device.ordinal} does not have the attribute MULTICAST_SUPPORTED`)
  }
}

const notSupported = 801

/** The driver does not say what it lacks: that no device can. */
function requireAnyDevice(): void {
  const out = scratch()
  check(cuDeviceGetCount(out), 'cuDeviceGetCount')
  const count = out.i32[0] as number
  for (let ordinal = 0; ordinal < count; ordinal += 1) {
    check(cuDeviceGet(out, ordinal), 'cuDeviceGet')
    if (hasMulticast(out.i32[0] as CUdevice)) return
  }
  throw refusal('no device has the attribute MULTICAST_SUPPORTED')
}

function hasMulticast(device: CUdevice): boolean {
  const out = scratch()
  const attribute = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
  check(cuDeviceGetAttribute(out, attribute, device), 'cuDeviceGetAttribute')
  return out.i32[0] !== 0
}

function refusal(reason: string): FeatureNotSupportedError {
  return new FeatureNotSupportedError({
    library: 'NVIDIA CUDA driver',
    api: 'multicast objects',
    reason,
    since: '12.1',
    installed: driverVersion().toString(),
  })
}

function resolve(properties: MulticastProperties): Uint8Array<ArrayBuffer> {
  requireOptions(properties, 'properties', '{ deviceCount, byteLength }')
  const { deviceCount, byteLength, handleTypes = [], flags = 0 } = properties
  return CUmulticastObjectProp.allocate({
    numDevices: requireInteger(deviceCount, 'deviceCount', 1, 0xffff_ffff),
    size: BigInt(requireInteger(byteLength, 'byteLength', 1, Number.MAX_SAFE_INTEGER)),
    handleTypes: BigInt(handleKindBits(handleTypes, 'handleTypes')),
    flags: BigInt(requireInteger(flags, 'flags', 0, Number.MAX_SAFE_INTEGER)),
  })
}

function granularityOf(memory: Uint8Array, granularity: Granularity): number {
  if (granularity !== 'minimum' && granularity !== 'recommended') {
    throw new TypeError(`granularity must be 'minimum' or 'recommended', not ${describeValue(granularity)}`)
  }
  const out = scratch()
  const { CU_MULTICAST_GRANULARITY_MINIMUM: minimum, CU_MULTICAST_GRANULARITY_RECOMMENDED: recommended } =
    CUmulticastGranularity_flags
  const code = granularity === 'minimum' ? minimum : recommended
  const status: number = cuMulticastGetGranularity(out, memory, code)
  if (status === notSupported) requireAnyDevice()
  check(status, 'cuMulticastGetGranularity')
  return Number(out.u64[0])
}

/**
 * Bytes that sizes and offsets of such a multicast object must be a multiple of (`cuMulticastGetGranularity`).
 * @throws FeatureNotSupportedError below CUDA 12.1.
 */
export function multicastGranularity(
  properties: MulticastProperties,
  granularity: Granularity = 'recommended',
): number {
  requireMulticast()
  return granularityOf(resolve(properties), granularity)
}

/**
 * Memory of several devices behind one address: what is written through a mapping of it lands in the memory that each
 * device has bound. Add every device, bind memory of each, map it into an `AddressRange`.
 */
export class MulticastObject extends Resource {
  protected readonly kind = 'MulticastObject'
  readonly byteLength: number
  /** How many devices take part; undefined for an imported object, which does not tell. */
  readonly deviceCount: number | undefined
  /** Kinds of handle it can be exported as; undefined for an imported object, which does not tell. */
  readonly handleTypes: readonly HandleKind[] | undefined
  /** @internal */
  readonly _contexts: Context[] = []
  readonly #handle: CUmemGenericAllocationHandle
  /** @internal */
  readonly _granularity: number
  readonly #bindings: Binding[] = []
  /** Other processes may add devices of theirs, so nothing can be said about how many there are. */
  #isShared: boolean

  private constructor(
    handle: CUmemGenericAllocationHandle,
    byteLength: number,
    granularity: number,
    properties?: MulticastProperties,
  ) {
    super()
    this.#handle = handle
    this.byteLength = byteLength
    this.deviceCount = properties?.deviceCount
    this.handleTypes =
      properties === undefined ? undefined : handleKindsOf(handleKindBits(properties.handleTypes ?? [], 'handleTypes'))
    this._granularity = granularity
    this.#isShared = properties === undefined
    const contexts = this._contexts
    watchForLeak(this, `A MulticastObject of ${byteLength} bytes`, () => {
      try {
        checkRelease(cuMemRelease(handle), 'cuMemRelease')
      } finally {
        for (const context of contexts) context._removeChild()
      }
      return 'it is freed as soon as nothing maps it'
    })
  }

  /**
   * Makes a multicast object (`cuMulticastCreate`).
   * @throws FeatureNotSupportedError below CUDA 12.1; RangeError for a size that is no multiple of the granularity.
   */
  static create(properties: MulticastProperties): MulticastObject {
    requireMulticast()
    const memory = resolve(properties)
    const granularity = granularityOf(memory, 'minimum')
    requireMultiple(properties.byteLength, 'byteLength', granularity)
    const out = scratch()
    const handleTypes = handleKindBits(properties.handleTypes ?? [], 'handleTypes')
    makeForKinds(handleTypes, () => check(cuMulticastCreate(out, memory), 'cuMulticastCreate'))
    const handle = out.u64[0] as CUmemGenericAllocationHandle
    return new MulticastObject(handle, properties.byteLength, granularity, properties)
  }

  /** A multicast object that another process exported (`cuMemImportFromShareableHandle`). */
  static import(handle: ShareableHandle<'multicast'>): MulticastObject {
    requireMulticast()
    requireHandle(handle, 'multicast')
    const memory = resolve({ deviceCount: 1, byteLength: handle.byteLength, handleTypes: handle.type })
    const granularity = granularityOf(memory, 'minimum')
    requireMultiple(handle.byteLength, 'byteLength of the handle', granularity)
    const imported = importHandle(handle, 'multicast', (from, kind) => {
      const out = scratch()
      check(cuMemImportFromShareableHandle(out, from, kind), 'cuMemImportFromShareableHandle')
      return out.u64[0] as CUmemGenericAllocationHandle
    })
    return new MulticastObject(imported, handle.byteLength, granularity)
  }

  /** The `CUmemGenericAllocationHandle`. @throws DisposedError */
  get handle(): CUmemGenericAllocationHandle {
    this._requireAlive()
    for (const context of this._contexts) context._requireAlive()
    return this.#handle
  }

  /** Ordinals of the devices that were added here. */
  get devices(): readonly number[] {
    return this._contexts.map((context) => context.device.ordinal)
  }

  /**
   * Adds a device (`cuMulticastAddDevice`). All must be added before memory is bound.
   * @throws FeatureNotSupportedError for a device without multicast, RangeError for one too many or one twice.
   */
  addDevice(device: DeviceWithContext): this {
    const { handle } = this
    const context = contextOf(device, 'MulticastObject.addDevice', 'device')
    // The device of another package is the same one.
    if (this.devices.includes(context.device.ordinal))
      throw new RangeError(`device ${device.ordinal} was added already`)
    if (this.deviceCount !== undefined && this._contexts.length >= this.deviceCount) {
      throw new RangeError(`the object is for ${this.deviceCount} devices, and as many were added`)
    }
    requireMulticast(device)
    check(cuMulticastAddDevice(handle, device.handle), 'cuMulticastAddDevice')
    context._addChild()
    this._contexts.push(context)
    return this
  }

  /**
   * Binds physical memory of one of the devices (`cuMulticastBindMem`). The object keeps it.
   * @throws RangeError before all devices are added, and for what does not fit or overlaps; StatusError.
   */
  bindMemory(memory: PhysicalMemory, options: BindOptions = {}): this {
    if (!(memory instanceof PhysicalMemory)) {
      throw new TypeError(`memory must be PhysicalMemory, not ${describeValue(memory)}`)
    }
    const { handle } = this
    const device = memory._device
    if (device === undefined) throw new RangeError('the memory lies on the host, not on a device that was added')
    const region = this.#region(options, memory.byteLength, device)
    const { offset, memoryOffset, byteLength } = region
    const from = memory.handle
    bindAs(
      this.handleTypes,
      () => memory.properties.handleTypes,
      () => check(cuMulticastBindMem(handle, offset, from, memoryOffset, byteLength, 0), 'cuMulticastBindMem'),
    )
    this.#bindings.push({ device, offset, byteLength })
    return this
  }

  /** Binds memory that is mapped already, by its address (`cuMulticastBindAddr`). */
  bindAddress(memory: MemoryLike, options: BindOptions = {}): this {
    const { handle } = this
    const range = toMemoryRange(memory)
    const device = this.#deviceAt(range.address as CUdeviceptr)
    const { offset, memoryOffset, byteLength } = this.#region(options, range.byteLength, device)
    const address = range.address + BigInt(memoryOffset)
    check(cuMulticastBindAddr(handle, offset, address, byteLength, 0), 'cuMulticastBindAddr')
    this.#bindings.push({ device, offset, byteLength })
    return this
  }

  /**
   * Takes what a device has bound out again (`cuMulticastUnbind`); blocks until the work of the devices has ended.
   * @throws RangeError for a region that was not bound as such.
   */
  unbind(device: DeviceWithContext, options: { readonly offset?: number; readonly byteLength?: number } = {}): this {
    const { handle } = this
    const { ordinal } = contextOf(device, 'MulticastObject.addDevice', 'device').device
    requireOptions(options, 'options', '{ offset }')
    const offset = requireInteger(options.offset ?? 0, 'offset', 0, this.byteLength - 1)
    const index = this.#bindings.findIndex(
      (binding) =>
        binding.device === ordinal &&
        binding.offset === offset &&
        (options.byteLength === undefined || binding.byteLength === options.byteLength),
    )
    const binding = this.#bindings[index]
    if (binding === undefined) {
      const size = options.byteLength === undefined ? '' : `, ${options.byteLength} bytes`
      throw new RangeError(`device ${ordinal} has nothing bound at offset ${offset}${size}`)
    }
    this.#wait()
    check(cuMulticastUnbind(handle, device.handle, offset, binding.byteLength), 'cuMulticastUnbind')
    this.#bindings.splice(index, 1)
    return this
  }

  /** A handle another process can import. It is the caller's to dispose of. Default: the platform's own kind. */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'multicast'> {
    const { handle } = this
    const made = (): readonly HandleKind[] | undefined => this.handleTypes
    const exported = exportHandle('multicast', kind, this.byteLength, undefined, made, (out, code) =>
      check(cuMemExportToShareableHandle(out, handle, code, 0), 'cuMemExportToShareableHandle'),
    )
    this.#isShared = true
    return exported
  }

  protected release(): void {
    forgetLeak(this)
    if (processIsEnding()) return
    try {
      checkRelease(cuMemRelease(this.#handle), 'cuMemRelease')
    } finally {
      for (const context of this._contexts.splice(0)) context._removeChild()
    }
  }

  /** Where memory lies, which its user need not be; undefined for an address that is no memory of a device. */
  #deviceAt(address: CUdeviceptr): number | undefined {
    const out = scratch()
    const attribute = CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    const ask = (): number => cuPointerGetAttribute(out, attribute, address)
    const status = this._contexts[0]?.run(ask) ?? ask()
    const ordinal = out.i32[0] as number
    return status === Status.success && ordinal >= 0 ? ordinal : undefined
  }

  #wait(): void {
    for (const context of this._contexts) context._release('ctxSynchronize')
  }

  /** @internal The driver waits, on this thread, until all devices were added: for ever when nobody else can add them. */
  _requireComplete(what: string): void {
    if (this.#isShared || this.deviceCount === undefined || this._contexts.length >= this.deviceCount) return
    throw new RangeError(`all ${this.deviceCount} devices must be added before ${what}; ${this._contexts.length} are`)
  }

  /** Checks a region against the object, the memory and what is bound. */
  #region(
    options: BindOptions,
    available: number,
    device: number | undefined,
  ): Required<Record<keyof BindOptions, number>> {
    requireOptions(options, 'options', '{ offset }')
    this._requireComplete('memory is bound')
    if (device !== undefined && !this.#isShared && !this.devices.includes(device)) {
      throw new RangeError(`the memory lies on device ${device}, which was not added`)
    }
    const unit = this._granularity
    const offset = requireMultiple(options.offset ?? 0, 'offset', unit, 0)
    const { memoryOffset, byteLength } = requirePart(options.memoryOffset, options.byteLength, available, unit)
    if (offset + byteLength > this.byteLength) {
      throw new RangeError(
        `offset ${offset} and ${byteLength} bytes end beyond the multicast object, which has ${this.byteLength} bytes`,
      )
    }
    const overlap = this.#bindings.find(
      (one) => one.device === device && offset < one.offset + one.byteLength && one.offset < offset + byteLength,
    )
    if (overlap !== undefined) {
      throw new RangeError(
        `${byteLength} bytes at offset ${offset} overlap what device ${device} has bound at ${overlap.offset}`,
      )
    }
    return { offset, memoryOffset, byteLength }
  }
}

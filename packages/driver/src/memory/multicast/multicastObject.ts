import {
  type CUdeviceptr,
  type CUmemGenericAllocationHandle,
  CUpointer_attribute,
  cuMemExportToShareableHandle,
  cuMemImportFromShareableHandle,
  cuMemRelease,
  cuMulticastAddDevice,
  cuMulticastBindAddr,
  cuMulticastBindMem,
  cuMulticastCreate,
  cuMulticastUnbind,
  cuPointerGetAttribute,
} from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import {
  type MemoryLike,
  type OptionKeys,
  optionalOptions,
  outOfRange,
  requireAddress,
  requireInstance,
  requireInteger,
  requireMade,
  toMemoryRange,
} from '@shoal/types'
import type { Context, DeviceOrContext } from '../../core/context/context.js'
import { check, checkRelease, Status } from '../../core/errors.js'
import { forgetLeak, processIsEnding, Resource, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { exportHandle, importHandle, requireHandle } from '../handles/exchange.js'
import {
  bindReason,
  type HandleKind,
  handleKindsOf,
  platformHandleKind,
  withCreateReason,
} from '../handles/handleKinds.js'
import type { ShareableHandle, ShareableHandleOf } from '../handles/handles.js'
import { resolveDevice } from '../vmm/location.js'
import { deviceOrdinalOf, PhysicalMemory } from '../vmm/physicalMemory.js'
import { requireMultiple, requirePart, requireRoom } from '../vmm/properties.js'
import { granularityOfMulticast, type MulticastProperties, requireMulticast, resolveMulticast } from './granularity.js'

/** The part of a multicast object and of memory to bind. */
export interface BindOptions {
  /** Offset in the multicast object in bytes. Default: 0. */
  readonly offset?: number | undefined
  /** Offset in the memory in bytes. Default: 0. */
  readonly memoryOffset?: number | undefined
  /** Number of bytes. Default: the rest of the memory after `memoryOffset`. Required for a raw handle or address. */
  readonly byteLength?: number | undefined
  /** Flags of `cuMulticastBindMem` and `cuMulticastBindAddr`. Current drivers accept only 0. Default: 0. */
  readonly flags?: number | bigint | undefined
}

/** Selects the binding of a device that `unbind` ends. */
export interface UnbindOptions {
  /** Start of the binding in the multicast object, in bytes. Default: 0. */
  readonly offset?: number | undefined
  /** Expected length of the binding, as a check. */
  readonly byteLength?: number | undefined
}

const bindKeys: OptionKeys<BindOptions> = { offset: true, memoryOffset: true, byteLength: true, flags: true }
const unbindKeys: OptionKeys<UnbindOptions> = { offset: true, byteLength: true }

interface Binding {
  readonly deviceOrdinal: number | undefined
  readonly offset: number
  readonly byteLength: number
}

/** A checked call that binds memory. */
interface BindCall {
  readonly api: string
  call(): number
  readonly binding: Binding
  /** The memory, which must not be released during the call. */
  readonly memory?: PhysicalMemory | undefined
  readonly handleTypes?: (() => readonly HandleKind[]) | undefined
}

/**
 * Memory of several devices behind one address. A write to a mapping of the object goes to the bound memory of each
 * device.
 *
 * Add every device, bind memory of each, then map the object into an `AddressRange`.
 * @example
 * using object = MulticastObject.create({ deviceCount: 2, byteLength })
 * object.addDevice(first).addDevice(second)
 * await Promise.all([object.bindMemory(memoryOfFirst), object.bindMemory(memoryOfSecond)])
 * using mapped = range.map(object)
 */
export class MulticastObject extends Resource {
  protected readonly kind = 'MulticastObject'
  /** Size in bytes per device. */
  readonly byteLength: number
  /** Number of participating devices; undefined for an imported object, because the handle does not contain it. */
  readonly deviceCount: number | undefined
  /** Kinds of handle for exporting; undefined for an imported object, because the handle does not contain them. */
  readonly handleTypes: readonly HandleKind[] | undefined
  /** @internal */
  readonly _contexts: Context[] = []
  readonly #handle: CUmemGenericAllocationHandle
  /** @internal */
  readonly _granularity: number
  readonly #bindings: Binding[] = []
  /** Whether other processes may add devices. The number of missing devices is then unknown. */
  #isShared: boolean
  /** Calls on native threads that use the handle. The handle is released after they return. */
  #pendingCalls = 0

  private constructor(
    handle: CUmemGenericAllocationHandle,
    byteLength: number,
    granularity: number,
    deviceCount?: number,
    handleTypes?: readonly HandleKind[],
  ) {
    requireMade(granularity, 'MulticastObject', 'MulticastObject.create', 'number')
    super()
    this.#handle = handle
    this.byteLength = byteLength
    this.deviceCount = deviceCount
    this.handleTypes = handleTypes
    this._granularity = granularity
    this.#isShared = deviceCount === undefined
    const contexts = this._contexts
    watchForLeak(this, `A MulticastObject of ${byteLength} bytes`, () => {
      releaseHandle(handle, contexts)
      return 'it is freed as soon as nothing maps it'
    })
  }

  /**
   * Creates a multicast object (`cuMulticastCreate`).
   * @throws TypeError; RangeError for a size that is not a multiple of the granularity; FeatureNotSupportedError below
   * CUDA 12.1, or when no device has multicast; StatusError
   */
  static create(properties: MulticastProperties): MulticastObject {
    const api = 'MulticastObject.create'
    requireMulticast()
    const resolved = resolveMulticast(properties, api)
    const { struct, deviceCount, byteLength, handleTypes } = resolved
    const granularity = granularityOfMulticast(resolved, api)
    requireMultiple(byteLength, api, 'byteLength', granularity)
    const out = scratch()
    withCreateReason(handleTypes, () => check(cuMulticastCreate(out, struct), 'cuMulticastCreate'))
    const handle = out.u64[0] as CUmemGenericAllocationHandle
    return new MulticastObject(handle, byteLength, granularity, deviceCount, handleKindsOf(handleTypes))
  }

  /**
   * Imports another process's multicast object (`cuMemImportFromShareableHandle`). The caller keeps owning the handle.
   * @throws TypeError for a handle of another kind of object; RangeError for an invalid size; FeatureNotSupportedError;
   * StatusError for a handle that the driver refuses
   */
  static import(handle: ShareableHandle<'multicast'>): MulticastObject {
    const api = 'MulticastObject.import'
    requireMulticast()
    requireHandle(handle, api, 'multicast')
    const { byteLength, type: handleTypes } = handle
    const granularity = granularityOfMulticast(resolveMulticast({ deviceCount: 1, byteLength, handleTypes }, api), api)
    requireMultiple(byteLength, api, 'handle.byteLength', granularity)
    const imported = importHandle(handle, api, 'multicast', (from, kind) => {
      const out = scratch()
      check(cuMemImportFromShareableHandle(out, from, kind), 'cuMemImportFromShareableHandle')
      return out.u64[0] as CUmemGenericAllocationHandle
    })
    return new MulticastObject(imported, byteLength, granularity)
  }

  /** The `CUmemGenericAllocationHandle`. @throws DisposedError */
  get handle(): CUmemGenericAllocationHandle {
    this._requireAlive()
    for (const context of this._contexts) context._requireAlive()
    return this.#handle
  }

  /** Ordinals of the devices that this process added. */
  get deviceOrdinals(): readonly number[] {
    return this._contexts.map((context) => context.device.ordinal)
  }

  /**
   * Adds a device (`cuMulticastAddDevice`). Add all devices before binding memory.
   * @throws TypeError; RangeError for too many devices or the same device twice; FeatureNotSupportedError for a device
   * without multicast; StatusError, DisposedError
   */
  addDevice(device: DeviceOrContext): this {
    const api = 'MulticastObject.addDevice'
    const { handle } = this
    const { context } = resolveDevice(device, api)
    const { ordinal } = context.device
    if (this.deviceOrdinals.includes(ordinal)) {
      throw new RangeError(`${api}: device must be another one, not device ${ordinal}, which was added already`)
    }
    if (this.deviceCount !== undefined && this._contexts.length >= this.deviceCount) {
      throw new RangeError(`${api}: device must be one of the object's ${this.deviceCount} devices, and all were added`)
    }
    requireMulticast(context.device)
    check(cuMulticastAddDevice(handle, context.device.handle), 'cuMulticastAddDevice')
    context._addChild()
    this._contexts.push(context)
    return this
  }

  /**
   * Binds physical memory of a device (`cuMulticastBindMem`, on a native thread).
   *
   * Waits until this process and the other processes have added all devices. This wait cannot be aborted. You may
   * dispose of `memory` afterwards, because the binding keeps the physical memory.
   * @param memory an object, or the raw `CUmemGenericAllocationHandle` of this process's memory; a raw handle has no
   * known size, so it requires `byteLength`
   * @throws TypeError; RangeError for memory that does not fit or overlaps other memory of the device, and when devices
   * are missing that no other process can add; StatusError, DisposedError
   */
  async bindMemory(memory: PhysicalMemory | bigint, options?: BindOptions): Promise<this> {
    return this.#bind(this.#memoryCall(memory, options, 'MulticastObject.bindMemory'))
  }

  /** Like {@link bindMemory}, but blocks the thread until all devices were added (`cuMulticastBindMem`). */
  bindMemorySync(memory: PhysicalMemory | bigint, options?: BindOptions): this {
    return this.#bindSync(this.#memoryCall(memory, options, 'MulticastObject.bindMemorySync'))
  }

  /**
   * Binds mapped memory by its address (`cuMulticastBindAddr`, on a native thread). Waits like {@link bindMemory}. Do
   * not dispose of the memory before the promise resolves.
   * @param memory memory of any package, or its address, which requires `byteLength`
   * @throws TypeError, RangeError, StatusError, DisposedError as {@link bindMemory}
   */
  async bindAddress(memory: MemoryLike | bigint, options?: BindOptions): Promise<this> {
    return this.#bind(this.#addressCall(memory, options, 'MulticastObject.bindAddress'))
  }

  /** Like {@link bindAddress}, but blocks the thread until all devices were added (`cuMulticastBindAddr`). */
  bindAddressSync(memory: MemoryLike | bigint, options?: BindOptions): this {
    return this.#bindSync(this.#addressCall(memory, options, 'MulticastObject.bindAddressSync'))
  }

  /**
   * Ends one binding of a device (`cuMulticastUnbind`). Blocks until the work of the devices that this process added
   * completes.
   * @throws TypeError; RangeError when the device has no such binding; StatusError, DisposedError
   */
  unbind(device: DeviceOrContext, options?: UnbindOptions): this {
    const api = 'MulticastObject.unbind'
    const { handle } = this
    const { ordinal, handle: deviceHandle } = resolveDevice(device, api).context.device
    const chosen = optionalOptions(options, api, unbindKeys)
    const { offset = 0 } = chosen
    requireInteger(offset, api, 'offset', 0, this.byteLength - 1)
    const { byteLength } = chosen
    if (byteLength !== undefined) requireInteger(byteLength, api, 'byteLength', 1, this.byteLength)
    const index = this.#bindings.findIndex(
      (binding) =>
        binding.deviceOrdinal === ordinal &&
        binding.offset === offset &&
        (byteLength === undefined || binding.byteLength === byteLength),
    )
    const binding = this.#bindings[index]
    if (binding === undefined) {
      const size = byteLength === undefined ? 'memory' : `${byteLength} bytes`
      throw outOfRange(api, 'offset', `one that device ${ordinal} has ${size} bound at`, offset)
    }
    this.#wait()
    check(cuMulticastUnbind(handle, deviceHandle, offset, binding.byteLength), 'cuMulticastUnbind')
    this.#bindings.splice(index, 1)
    return this
  }

  /**
   * Exports a handle for another process (`cuMemExportToShareableHandle`). The caller disposes of the handle.
   * @param kind one of the object's `handleTypes`. Default: the platform's own kind.
   * @throws TypeError; StatusError when the object was not created with this kind; DisposedError
   */
  export<K extends HandleKind = 'posix-fd'>(kind: K = platformHandleKind() as K): ShareableHandleOf<K, 'multicast'> {
    const { handle, byteLength } = this
    const handleTypes = (): readonly HandleKind[] | undefined => this.handleTypes
    const thing = { content: 'multicast', byteLength, handleTypes } as const
    const exported = exportHandle(kind, 'MulticastObject.export', thing, (out, code) =>
      check(cuMemExportToShareableHandle(out, handle, code, 0), 'cuMemExportToShareableHandle'),
    )
    this.#isShared = true
    return exported
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    const { byteLength, deviceCount } = this
    const deviceOrdinals = this.deviceOrdinals.join(', ') || undefined
    return { byteLength, deviceCount, deviceOrdinals }
  }

  protected release(): void {
    forgetLeak(this)
    if (!processIsEnding() && this.#pendingCalls === 0) releaseHandle(this.#handle, this._contexts)
  }

  /** @internal Throws if the driver would wait forever, because no other process can add the missing devices. */
  _requireComplete(api: string): void {
    if (this.#isShared || this.deviceCount === undefined || this._contexts.length >= this.deviceCount) return
    throw new RangeError(`${api}: all ${this.deviceCount} devices must be added before; ${this._contexts.length} are`)
  }

  #memoryCall(memory: PhysicalMemory | bigint, options: BindOptions | undefined, api: string): BindCall {
    const { handle } = this
    const chosen = optionalOptions(options, api, bindKeys)
    const flags = requireFlags(chosen.flags, api)
    if (typeof memory === 'bigint') {
      const raw = requireAddress(memory, api, 'memory') as CUmemGenericAllocationHandle
      const byteLength = requireInteger(chosen.byteLength, api, 'byteLength', 1)
      const deviceOrdinal = requireOnDevice(deviceOrdinalOf(raw), api)
      const binding = this.#region({ ...chosen, byteLength }, Number.MAX_SAFE_INTEGER, deviceOrdinal, api)
      const { offset, memoryOffset } = binding
      const call = (): number => cuMulticastBindMem(handle, offset, raw, memoryOffset, byteLength, flags)
      return { api: 'cuMulticastBindMem', call, binding }
    }
    requireInstance(memory, api, 'memory', PhysicalMemory, 'PhysicalMemory or its raw handle')
    const from = memory.handle
    const binding = this.#region(chosen, memory.byteLength, requireOnDevice(memory._deviceOrdinal, api), api)
    const { offset, memoryOffset, byteLength } = binding
    const call = (): number => cuMulticastBindMem(handle, offset, from, memoryOffset, byteLength, flags)
    return { api: 'cuMulticastBindMem', call, binding, memory, handleTypes: () => memory.properties.handleTypes }
  }

  #addressCall(memory: MemoryLike | bigint, options: BindOptions | undefined, api: string): BindCall {
    const { handle } = this
    const chosen = optionalOptions(options, api, bindKeys)
    const flags = requireFlags(chosen.flags, api)
    const range = typeof memory === 'bigint' ? rawRange(memory, chosen, api) : toMemoryRange(memory, api)
    const deviceOrdinal = this.#deviceOrdinalAt(range.address as CUdeviceptr)
    const binding = this.#region(chosen, range.byteLength, deviceOrdinal, api)
    const { offset, memoryOffset, byteLength } = binding
    const address = range.address + BigInt(memoryOffset)
    const call = (): number => cuMulticastBindAddr(handle, offset, address, byteLength, flags)
    return { api: 'cuMulticastBindAddr', call, binding }
  }

  #bindSync(bind: BindCall): this {
    this.#finish(bind, bind.call())
    this.#bindings.push(bind.binding)
    return this
  }

  async #bind(bind: BindCall): Promise<this> {
    const contexts = [...this._contexts]
    // Register the binding now, so that no other call binds the same part meanwhile.
    this.#bindings.push(bind.binding)
    this.#pendingCalls += 1
    bind.memory?._hold()
    for (const context of contexts) context._addWait()
    try {
      const [status = Status.success] = await offThread({}, () => bind.call())
      this.#finish(bind, status)
    } catch (error) {
      this.#bindings.splice(this.#bindings.indexOf(bind.binding), 1)
      throw error
    } finally {
      bind.memory?._endHold()
      this.#pendingCalls -= 1
      for (const context of contexts) context._endWait()
      if (this.disposed && this.#pendingCalls === 0) releaseHandle(this.#handle, this._contexts)
    }
    return this
  }

  #finish({ api, memory, handleTypes }: BindCall, status: number): void {
    try {
      check(status, api)
    } catch (error) {
      // After a dispose() the handle types say nothing about the error's cause.
      if (handleTypes === undefined || this.disposed || memory?.disposed === true) throw error
      throw bindReason(error, this.handleTypes, handleTypes)
    }
  }

  /** Returns the device of the memory, which may differ from the device that uses it; undefined for other addresses. */
  #deviceOrdinalAt(address: CUdeviceptr): number | undefined {
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

  /** Checks a region against the object, the memory and existing bindings. */
  #region(
    options: BindOptions,
    available: number,
    deviceOrdinal: number | undefined,
    api: string,
  ): Binding & { readonly memoryOffset: number } {
    this._requireComplete(api)
    if (deviceOrdinal !== undefined && !this.#isShared && !this.deviceOrdinals.includes(deviceOrdinal)) {
      throw new RangeError(`${api}: memory must lie on a device that was added, not on device ${deviceOrdinal}`)
    }
    const unit = this._granularity
    const offset = requireMultiple(options.offset === undefined ? 0 : options.offset, api, 'offset', unit, 0)
    const { memoryOffset, byteLength } = requirePart(options.memoryOffset, options.byteLength, available, unit, api)
    requireRoom(api, 'offset', offset, byteLength, this.byteLength, 'multicast object')
    const other = this.#bindings.find(
      (one) =>
        one.deviceOrdinal === deviceOrdinal && offset < one.offset + one.byteLength && one.offset < offset + byteLength,
    )
    if (other !== undefined) {
      const bound = `the ${other.byteLength} bytes that device ${deviceOrdinal} has bound at ${other.offset}`
      throw outOfRange(api, 'offset', `such that ${byteLength} bytes do not overlap ${bound}`, offset)
    }
    return { deviceOrdinal, offset, memoryOffset, byteLength }
  }
}

function requireFlags(flags: number | bigint | undefined, api: string): bigint {
  if (typeof flags === 'bigint') return requireAddress(flags, api, 'flags')
  return BigInt(requireInteger(flags === undefined ? 0 : flags, api, 'flags', 0))
}

/** Returns a range for a raw address. The caller provides the number of bytes. */
function rawRange(
  memory: bigint,
  { byteLength, memoryOffset = 0 }: BindOptions,
  api: string,
): { readonly address: bigint; readonly byteLength: number } {
  const address = requireAddress(memory, api, 'memory')
  if (address === 0n) throw outOfRange(api, 'memory', 'an address other than 0', address)
  requireInteger(memoryOffset, api, 'memoryOffset', 0)
  return { address, byteLength: memoryOffset + requireInteger(byteLength, api, 'byteLength', 1) }
}

function requireOnDevice(deviceOrdinal: number | undefined, api: string): number {
  if (deviceOrdinal !== undefined) return deviceOrdinal
  throw new RangeError(`${api}: memory must lie on a device that was added, not on the host`)
}

function releaseHandle(handle: CUmemGenericAllocationHandle, contexts: Context[]): void {
  try {
    checkRelease(cuMemRelease(handle), 'cuMemRelease')
  } finally {
    for (const context of contexts.splice(0)) context._removeChild()
  }
}

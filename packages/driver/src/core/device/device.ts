import {
  type CUdevice,
  CUdevice_attribute,
  CUdevice_P2PAttribute,
  cuDeviceGetExecAffinitySupport,
  cuDeviceGetLuid,
  cuDeviceGetName,
  cuDevicePrimaryCtxGetState,
  cuDevicePrimaryCtxSetFlags,
  cuDeviceTotalMem,
  driver,
} from '@shoal/cuda-sys/driver'
import { offThread, textIn } from '@shoal/ffi'
import {
  type DeviceLike,
  deviceProtocol,
  inspectKey,
  isInstance,
  loadedFrom,
  PublicObject,
  requireMade,
  toDeviceOrdinal,
  wrongType,
} from '@shoal/types'
import type { CallName, CudaLibrary } from '../calls/cudaLibrary.js'
import { driverLibrary } from '../calls/driverLibrary.js'
import { Context, type DeviceWithContext } from '../context/context.js'
import { DeviceInUseError } from '../context/deviceInUse.js'
import { type CacheConfig, type ContextFlags, encodeContextFlags, mapHostFlag } from '../context/flags.js'
import { type ContextLimit, limitCode } from '../context/limits.js'
import { hasReleases, whenReleasesEnd } from '../context/releases.js'
import { check, Status } from '../errors.js'
import { throwFirst } from '../lifetime.js'
import { scratch } from '../native.js'
import { withBlockingReleases } from '../releasing.js'
import { DeviceList } from './deviceList.js'
import { uuidOf } from './deviceUuid.js'

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** Attributes of a device: names of `CUdevice_attribute` without the prefix, such as `'MULTIPROCESSOR_COUNT'`. */
export type DeviceAttribute = Exclude<WithoutPrefix<keyof typeof CUdevice_attribute, 'CU_DEVICE_ATTRIBUTE_'>, 'MAX'>

/** Attributes of a link between devices: names of `CUdevice_P2PAttribute` without the prefix. */
export type PeerAttribute =
  | 'PERFORMANCE_RANK'
  | 'ACCESS_SUPPORTED'
  | 'NATIVE_ATOMIC_SUPPORTED'
  | 'CUDA_ARRAY_ACCESS_SUPPORTED'
  | 'ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED'

const attributePrefix = 'CU_DEVICE_ATTRIBUTE_'
const peerPrefix = 'CU_DEVICE_P2P_ATTRIBUTE_'

/** Returns every attribute name in the order of the C header. Names that share a code are all included. */
export function deviceAttributeNames(): readonly DeviceAttribute[] {
  return Object.keys(CUdevice_attribute)
    .filter((name) => name.startsWith(attributePrefix) && name !== `${attributePrefix}MAX`)
    .map((name) => name.slice(attributePrefix.length) as DeviceAttribute)
}

let isSoftware: boolean | undefined

/**
 * A CUDA device. Each JavaScript thread has one object per device; it costs nothing until its first use.
 *
 * @example
 * for (const device of Device.all()) console.log(device.name, device.memoryInfo().free)
 */
export class Device extends PublicObject implements DeviceWithContext, DeviceLike {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** Number of the device in this process, from 0. */
  readonly ordinal: number
  /** The `CUdevice`. */
  readonly handle: CUdevice
  /** @internal The library behind the objects of this device. */
  readonly _cuda: CudaLibrary
  #primaryContext: Context | undefined
  #reset: Promise<void> | undefined
  /** True while the primary context is being destroyed. */
  #isBeingDestroyed = false
  #computeCapability: { readonly major: number; readonly minor: number } | undefined

  /** @internal */
  protected constructor(ordinal: number, handle: CUdevice, cuda: CudaLibrary) {
    requireMade(cuda?.startForCount, 'Device', 'Device.get', 'function')
    super()
    this.ordinal = ordinal
    this.handle = handle
    this._cuda = cuda
  }

  static #list: DeviceList<Device> | undefined

  static get #devices(): DeviceList<Device> {
    Device.#list ??= new DeviceList(driverLibrary, (ordinal, handle) => new Device(ordinal, handle, driverLibrary))
    return Device.#list
  }

  /**
   * Number of devices; 0 if a driver but no device exists (`cuDeviceGetCount`, `cudaGetDeviceCount`).
   * @throws LibraryNotFoundError when there is no driver
   */
  static get count(): number {
    return Device.#devices.count
  }

  /** Returns the device with this ordinal. @throws RangeError when the device does not exist */
  static get(ordinal: number): Device {
    return Device.#devices.get(ordinal)
  }

  /** Returns this package's object for an ordinal or for a device of any package. @throws TypeError, RangeError */
  static from(device: DeviceLike | number): Device {
    return Device._find(device, 'Device.from', 'device')
  }

  /** @internal Like {@link from}. Errors name the function `api`. */
  static _find(device: DeviceLike | number, api: string, name: string): Device {
    return Device.#devices.get(toDeviceOrdinal(device, api, name), api, name)
  }

  /** Returns all devices, ordered by ordinal. */
  static all(): readonly Device[] {
    return Device.#devices.all()
  }

  /**
   * Returns the device at a PCI bus id such as `'0000:65:00.0'` (`cuDeviceGetByPCIBusId`, `cudaDeviceGetByPCIBusId`).
   */
  static getByPciBusId(pciBusId: string): Device {
    return Device.#devices.getByPciBusId(pciBusId)
  }

  /** The device's name, such as `'NVIDIA H200'` (`cuDeviceGetName`). */
  get name(): string {
    const out = new Uint8Array(scratch().buffer, 0, 256)
    check(cuDeviceGetName(out, out.length, this.handle), 'cuDeviceGetName')
    return textIn(out)
  }

  /** The UUID in the form of `nvidia-smi`, `'GPU-…'` (`cuDeviceGetUuid`). */
  get uuid(): string {
    return uuidOf(this.handle)
  }

  /**
   * The locally unique id and node mask that Windows graphics interfaces use for the device (`cuDeviceGetLuid`).
   * @throws StatusError when the platform has no such ids
   */
  get luid(): { readonly luid: Uint8Array; readonly nodeMask: number } {
    const out = scratch()
    check(cuDeviceGetLuid(out.address, out.address + 8n, this.handle), 'cuDeviceGetLuid')
    return { luid: new Uint8Array(out.buffer.slice(0, 8)), nodeMask: out.u32[2] as number }
  }

  /** Total memory of the device in bytes (`cuDeviceTotalMem`). */
  get totalMemory(): number {
    const out = scratch()
    check(cuDeviceTotalMem(out, this.handle), 'cuDeviceTotalMem')
    return Number(out.u64[0])
  }

  /** The compute capability, such as `{ major: 9, minor: 0 }`. */
  get computeCapability(): { readonly major: number; readonly minor: number } {
    this.#computeCapability ??= {
      major: this.attribute('COMPUTE_CAPABILITY_MAJOR'),
      minor: this.attribute('COMPUTE_CAPABILITY_MINOR'),
    }
    return this.#computeCapability
  }

  /** The PCI bus id, such as `'0000:65:00.0'` (`cuDeviceGetPCIBusId`, `cudaDeviceGetPCIBusId`). */
  get pciBusId(): string {
    const out = scratch()
    this.#check(this._cuda.calls.deviceGetPCIBusId(out, 64, this.#argument), 'deviceGetPCIBusId')
    return textIn(new Uint8Array(out.buffer, 0, 64))
  }

  /** Whether this is the software device of `@shoal/sim` instead of a GPU. */
  get isSoftware(): boolean {
    this._cuda.start()
    // Only the software device has this function. The environment variable may differ from the loaded library.
    isSoftware ??= driver.rawSymbol('shoalSimDescribe') !== undefined
    return isSoftware
  }

  /**
   * Returns one attribute by name. A boolean attribute is 1 or 0 (`cuDeviceGetAttribute`, `cudaDeviceGetAttribute`).
   */
  attribute(attribute: DeviceAttribute): number {
    return this._attribute(
      this._codeOf('Device.attribute', 'attribute', CUdevice_attribute, attributePrefix, attribute),
    )
  }

  /**
   * Whether kernels of this device can access memory of `peer` directly (`cuDeviceCanAccessPeer`,
   * `cudaDeviceCanAccessPeer`).
   */
  canAccessPeer(peer: DeviceLike | number): boolean {
    const other = this.#peer(peer, 'Device.canAccessPeer')
    const out = scratch()
    this.#check(this._cuda.calls.deviceCanAccessPeer(out, this.#argument, other), 'deviceCanAccessPeer')
    return out.i32[0] !== 0
  }

  /**
   * Returns an attribute of the link from this device to `peer` (`cuDeviceGetP2PAttribute`,
   * `cudaDeviceGetP2PAttribute`).
   */
  peerAttribute(attribute: PeerAttribute, peer: DeviceLike | number): number {
    const api = 'Device.peerAttribute'
    return this._peerAttribute(this._codeOf(api, 'attribute', CUdevice_P2PAttribute, peerPrefix, attribute), peer)
  }

  /**
   * Lets work of this device access memory of `peer` directly, in one direction (`cuCtxEnablePeerAccess`,
   * `cudaDeviceEnablePeerAccess`). Enabling twice is not an error. @throws StatusError when the devices do not support
   * peer access
   */
  enablePeerAccess(peer: DeviceLike | number): void {
    const api = 'Device.enablePeerAccess'
    this.primaryContext._enablePeerAccess(this._resolve(peer, api, 'peer'), api)
  }

  /** Disables access to memory of `peer`. Does nothing if the access is not enabled. */
  disablePeerAccess(peer: DeviceLike | number): void {
    const api = 'Device.disablePeerAccess'
    this.primaryContext._disablePeerAccess(this._resolve(peer, api, 'peer'), api)
  }

  /** Returns free and total memory in bytes, as seen by the primary context (`cuMemGetInfo`, `cudaMemGetInfo`). */
  memoryInfo(): { readonly free: number; readonly total: number } {
    const out = scratch()
    this.primaryContext._call('memGetInfo', out.address, out.address + 8n)
    return { free: Number(out.u64[0]), total: Number(out.u64[1]) }
  }

  /** Whether contexts can be limited to some multiprocessors, as MPS does (`cuDeviceGetExecAffinitySupport`). */
  get execAffinitySupported(): boolean {
    const out = scratch()
    check(cuDeviceGetExecAffinitySupport(out, 0, this.handle), 'cuDeviceGetExecAffinitySupport')
    return out.i32[0] !== 0
  }

  /** Whether the process has retained the primary context, and the context's flags (`cuDevicePrimaryCtxGetState`). */
  get primaryContextState(): { readonly active: boolean; readonly flags: number } {
    const out = scratch()
    check(cuDevicePrimaryCtxGetState(this.handle, out.address, out.address + 4n), 'cuDevicePrimaryCtxGetState')
    return { active: out.i32[1] !== 0, flags: out.u32[0] as number }
  }

  /**
   * Sets all flags of the primary context, even while the context is in use. Omitted flags are off, except `mapHost`: a
   * primary context always maps page-locked memory (`cuDevicePrimaryCtxSetFlags`, `cudaSetDeviceFlags`).
   * @throws TypeError, StatusError
   */
  setPrimaryContextFlags(flags: Partial<ContextFlags>): void {
    const encoded = encodeContextFlags(flags, 'Device.setPrimaryContextFlags')
    // The driver refuses this flag here, though a context reports it.
    check(cuDevicePrimaryCtxSetFlags(this.handle, encoded & ~mapHostFlag), 'cuDevicePrimaryCtxSetFlags')
  }

  /** Whether kernels prefer more shared memory or more L1 cache. See `Context.cacheConfig`. */
  get cacheConfig(): CacheConfig {
    return this.primaryContext.cacheConfig
  }

  set cacheConfig(config: CacheConfig) {
    this.primaryContext._setCacheConfig(config, 'Device.cacheConfig')
  }

  /** Range of stream priorities. A lower number is a higher priority. See `Context.streamPriorityRange`. */
  get streamPriorityRange(): { readonly least: number; readonly greatest: number } {
    return this.primaryContext.streamPriorityRange
  }

  /** Returns a limit of the primary context in its own unit, usually bytes (`cuCtxGetLimit`, `cudaDeviceGetLimit`). */
  getLimit(limit: ContextLimit): number {
    return this.primaryContext._getLimit(limitCode(limit, 'Device.getLimit'))
  }

  /** Requests a limit of the primary context. The driver may round it (`cuCtxSetLimit`, `cudaDeviceSetLimit`). */
  setLimit(limit: ContextLimit, value: number): void {
    const api = 'Device.setLimit'
    this.primaryContext._setLimit(limitCode(limit, api), value, api)
  }

  /** Blocks until all work of the primary context completes (`cuCtxSynchronize`, `cudaDeviceSynchronize`). */
  synchronizeSync(): void {
    this.primaryContext.synchronizeSync()
  }

  /** Resolves when all work of the primary context completes. */
  async synchronize(): Promise<this> {
    await this.primaryContext.synchronize()
    return this
  }

  get [Symbol.toStringTag](): string {
    return 'Device'
  }

  override [inspectKey](): string {
    return `Device ${this.ordinal} (${this.name})`
  }

  /** @internal Returns an attribute by its code. Both libraries use the same codes. */
  _attribute(code: number): number {
    const out = scratch()
    const status: number = this._cuda.calls.deviceGetAttribute(out, code as CUdevice_attribute, this.#argument)
    this.#check(status, 'deviceGetAttribute')
    return out.i32[0] as number
  }

  /** @internal */
  _peerAttribute(code: number, peer: DeviceLike | number): number {
    const other = this.#peer(peer, 'Device.peerAttribute')
    const out = scratch()
    const { calls } = this._cuda
    this.#check(
      calls.deviceGetP2PAttribute(out, code as CUdevice_P2PAttribute, this.#argument, other),
      'deviceGetP2PAttribute',
    )
    return out.i32[0] as number
  }

  /** @internal Returns the code of a name without its prefix. @throws TypeError */
  _codeOf(api: string, name: string, codes: Readonly<Record<string, number>>, prefix: string, value: unknown): number {
    const key = typeof value === 'string' && value.toUpperCase() !== 'MAX' ? prefix + value : ''
    if (!Object.hasOwn(codes, key)) throw wrongType(api, name, `a name of ${prefix}… without that prefix`, value)
    return codes[key] as number
  }

  /** @internal Returns this package's object for a device. */
  _resolve(device: DeviceLike | number, api: string, name: string): Device {
    return isInstance(device, Device) ? device : Device._find(device, api, name)
  }

  get #argument(): CUdevice {
    return this._cuda.deviceArgument(this) as CUdevice
  }

  #peer(peer: DeviceLike | number, api: string): CUdevice {
    return this._cuda.deviceArgument(this._resolve(peer, api, 'peer')) as CUdevice
  }

  #check(status: number, call: CallName): void {
    if (status !== Status.success) throw this._cuda.error(status, this._cuda.nameOf(call))
  }

  /**
   * The primary context. The first use retains it, which may take a moment (`cuDevicePrimaryCtxRetain`).
   * @throws DeviceInUseError while {@link reset} destroys the context
   */
  get primaryContext(): Context {
    if (this.#isBeingDestroyed) throw new DeviceInUseError({ deviceOrdinal: this.ordinal, reason: 'is being reset' })
    // A device object of the other package can have reset the context.
    if (this.#primaryContext?.disposed) this.#forget()
    this.#primaryContext ??= Context._retainPrimary(this)
    return this.#primaryContext
  }

  /**
   * Destroys everything in the primary context, for every user in the process. Runs on a native thread, because the
   * reset waits for work in flight. First completes all waits of this thread. Objects of the context throw
   * `DisposedError` afterwards. The next use of the device starts a new context. If a reset is already running, this
   * call joins it.
   *
   * Only this JavaScript thread knows about the reset. Libraries such as NCCL and other threads of the process do not:
   * their later use of the device fails or ends the process. Reset a device only when no other code uses it.
   * @throws DeviceInUseError, with nothing destroyed: in a worker, because it cannot know what other threads do, and
   * while the `ArrayBuffer` of page-locked memory that was moved away can still be read
   */
  async reset(): Promise<void> {
    if (!process.getBuiltinModule('node:worker_threads').isMainThread) {
      throw new DeviceInUseError({
        deviceOrdinal: this.ordinal,
        reason: 'cannot be reset from a worker, because other threads may be using it',
      })
    }
    this.#reset ??= this.#resetOnce().finally(() => {
      this.#reset = undefined
    })
    return this.#reset
  }

  /**
   * Releases the primary context when its last object is gone. The next use of the device retains it again. A clean
   * exit needs no dispose().
   */
  dispose(): void {
    const context = this.#primaryContext
    if (context === undefined) return
    this.#forget()
    context._close()
  }

  /**
   * Like {@link dispose}, but if no object of the context is left, blocks this thread until the driver has released it.
   */
  disposeSync(): void {
    withBlockingReleases(() => this.dispose())
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  get [deviceProtocol](): { readonly version: 0; readonly ordinal: number } {
    return { version: 0, ordinal: this.ordinal }
  }

  #forget(): void {
    this.#primaryContext = undefined
  }

  async #resetOnce(): Promise<void> {
    if (hasReleases()) await whenReleasesEnd()
    const { handle } = this.primaryContext
    let contexts = Context._livingOn(this)
    for (let index = 0; index < contexts.length; ) {
      // A completed wait may have started new work in any context.
      const hasWaited = await contexts[index]?._whenIdle()
      contexts = Context._livingOn(this)
      index = hasWaited ? 0 : index + 1
    }
    for (const context of contexts) context._requireResettable()
    this.#forget()
    this.#isBeingDestroyed = true
    const failures: unknown[] = []
    const attempt = (fn: () => void): void => {
      try {
        fn()
      } catch (error) {
        failures.push(error)
      }
    }
    try {
      for (const context of contexts) attempt(() => context._markReset())
      const { name, calls } = this._cuda
      const argument = this.#argument
      const [status = Status.success] = await offThread(name === 'runtime' ? { context: handle } : {}, () =>
        calls.devicePrimaryCtxReset(argument),
      )
      attempt(() => this.#check(status, 'devicePrimaryCtxReset'))
    } finally {
      this.#isBeingDestroyed = false
      for (const context of contexts) attempt(() => context._releaseAfterReset())
    }
    throwFirst(`Device ${this.ordinal}`, failures)
  }
}

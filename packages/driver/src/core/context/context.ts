import {
  type CUcontext,
  type CUdevice,
  type CUlimit,
  cuCtxGetApiVersion,
  cuCtxGetCurrent,
  cuCtxGetExecAffinity,
  cuCtxGetFlags,
  cuCtxGetId,
  cuCtxRecordEvent,
  cuCtxResetPersistingL2Cache,
  cuCtxSetCurrent,
  cuCtxSetFlags,
  cuCtxWaitEvent,
  cuDevicePrimaryCtxRetain,
  cuFlushGPUDirectRDMAWrites,
  ensureContextFunctions,
  withContext,
} from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import {
  inspectKey,
  inspectLine,
  isForged,
  isProxy,
  isRevoked,
  otherCopy,
  outOfRange,
  propertyOf,
  requireFunction,
  requireInteger,
  requireKeyOf,
  requireMade,
  requireSynchronous,
  wrongType,
} from '@shoal/types'
import type { DeviceReference } from '../calls/cudaLibrary.js'
import type { Device } from '../device/device.js'
import { check, Status } from '../errors.js'
import { scratch } from '../native.js'
import { ContextLifetime } from './contextLifetime.js'
import { type EventLike, requireEventLike } from './eventLike.js'
import {
  type CacheConfig,
  type ContextFlags,
  cacheConfigOf,
  cacheConfigs,
  decodeContextFlags,
  encodeContextFlags,
} from './flags.js'
import { type ContextLimit, limitCode } from './limits.js'
import { addPeer, peerOrdinals, removePeer } from './peers.js'

/** `CUflushGPUDirectRDMAWritesScope` */
const flushScopes = { owner: 100, 'all-devices': 200 } as const

/** A device object of a safe package. It retains its primary context on first use. */
export interface DeviceWithContext {
  readonly ordinal: number
  /** The `CUdevice`. */
  readonly handle: CUdevice
  readonly primaryContext: Context
}

/**
 * The primary context of a device, which libcudart, NCCL and NVSHMEM use too.
 *
 * Each JavaScript thread retains the context once. The thread releases it after the device was disposed of, when no
 * object of the context is left.
 */
export class Context extends ContextLifetime {
  /** @internal The pool that `DeviceBuffer.allocateOn` uses instead of the device's current pool. */
  _allocator: object | undefined

  /** @internal */
  protected constructor(device: Device, handle: CUcontext) {
    requireMade(handle, 'Context', 'Device.primaryContext')
    super(device, handle)
  }

  /** @internal Retains the primary context of a device. */
  static _retainPrimary(device: Device): Context {
    const out = scratch()
    check(cuDevicePrimaryCtxRetain(out, device.handle), 'cuDevicePrimaryCtxRetain')
    return new Context(device, out.u64[0] as CUcontext)
  }

  /**
   * Runs `fn` with this context current on the thread, then restores the previous context. Raw functions of
   * `@shoal/cuda-sys` need a current context; objects of this package switch by themselves. `fn` must be synchronous.
   * @throws TypeError when `fn` returns a promise
   *
   * @example
   * context.run(() => cuCtxSynchronize()) // a raw function of @shoal/cuda-sys/driver
   */
  run<T>(fn: () => T): T {
    requireFunction(fn, 'Context.run', 'fn')
    return requireSynchronous(withContext(this.handle, fn), 'Context.run')
  }

  /**
   * Makes this context current on the thread until another context becomes current (`cuCtxSetCurrent`). Objects of this
   * package do not need this call. But operations of the current context save the switch of contexts, which is
   * measurable for many small kernels.
   */
  setCurrent(): void {
    ensureContextFunctions()
    check(cuCtxSetCurrent(this.handle), 'cuCtxSetCurrent')
  }

  /** Whether this context is current on the thread (`cuCtxGetCurrent`). */
  get isCurrent(): boolean {
    const out = scratch()
    check(cuCtxGetCurrent(out), 'cuCtxGetCurrent')
    return out.u64[0] === this.handle
  }

  /**
   * Resolves when all work of the context completes (`cuCtxSynchronize`, `cudaDeviceSynchronize`, on a native thread).
   */
  async synchronize(): Promise<void> {
    const { handle, _cuda: cuda } = this
    this._addWait()
    try {
      const [status = Status.success] = await offThread({ context: handle }, () => cuda.calls.ctxSynchronize())
      if (status !== Status.success) throw this._error(status, 'ctxSynchronize')
    } finally {
      this._endWait()
    }
  }

  /** Blocks the thread until all work of the context completes (`cuCtxSynchronize`, `cudaDeviceSynchronize`). */
  synchronizeSync(): void {
    this._call('ctxSynchronize')
  }

  /** API version of the context, such as 3020 (`cuCtxGetApiVersion`). */
  get apiVersion(): number {
    const out = scratch()
    check(cuCtxGetApiVersion(this.handle, out), 'cuCtxGetApiVersion')
    return out.u32[0] as number
  }

  /** Unique number of the context in this process. A primary context gets a new one after a reset (`cuCtxGetId`). */
  get id(): bigint {
    const out = scratch()
    check(cuCtxGetId(this.handle, out), 'cuCtxGetId')
    return out.u64[0] as bigint
  }

  /** Flags of the context (`cuCtxGetFlags`). */
  get flags(): ContextFlags {
    const out = scratch()
    this._callDriver('cuCtxGetFlags', () => cuCtxGetFlags(out))
    return decodeContextFlags(out.u32[0] as number)
  }

  /**
   * Sets all flags of the context; omitted flags are off (`cuCtxSetFlags`).
   * @throws TypeError; VersionTooOldError before CUDA 12.1; StatusError
   */
  setFlags(flags: Partial<ContextFlags>): void {
    const encoded = encodeContextFlags(flags, 'Context.setFlags')
    this._callDriver('cuCtxSetFlags', () => cuCtxSetFlags(encoded))
  }

  /**
   * Whether kernels prefer more shared memory or more L1 cache, on devices that share one memory between them
   * (`cuCtxGetCacheConfig`, `cudaDeviceGetCacheConfig`).
   */
  get cacheConfig(): CacheConfig {
    const out = scratch()
    this._call('ctxGetCacheConfig', out)
    return cacheConfigOf(out.i32[0] as number)
  }

  set cacheConfig(config: CacheConfig) {
    this._setCacheConfig(config, 'Context.cacheConfig')
  }

  /** @internal Sets the cache preference. Errors name the function `api`. */
  _setCacheConfig(config: CacheConfig, api: string): void {
    this._call('ctxSetCacheConfig', requireKeyOf(config, api, 'config', cacheConfigs))
  }

  /**
   * Number of multiprocessors the context may use, if MPS limits it (`cuCtxGetExecAffinity`).
   * @throws StatusError when there is no limit
   */
  get execAffinity(): number {
    const out = scratch()
    this._callDriver('cuCtxGetExecAffinity', () => cuCtxGetExecAffinity(out, 0))
    return out.u32[1] as number
  }

  /** Lets the L2 cache evict all lines that access windows keep in it (`cuCtxResetPersistingL2Cache`). */
  resetPersistingL2Cache(): void {
    this._callDriver('cuCtxResetPersistingL2Cache', () => cuCtxResetPersistingL2Cache())
  }

  /**
   * Makes earlier writes of other devices, such as network cards, visible (`cuFlushGPUDirectRDMAWrites`).
   *
   * The writes to this device's memory become visible to this device, or with `'all-devices'` also to other devices.
   * Call this method if the device's attribute `GPU_DIRECT_RDMA_WRITES_ORDERING` does not guarantee this order.
   * @throws TypeError; StatusError when the device does not support it; VersionTooOldError before CUDA 11.3
   */
  flushRdmaWrites(scope: 'owner' | 'all-devices' = 'owner'): void {
    const code = requireKeyOf(scope, 'Context.flushRdmaWrites', 'scope', flushScopes)
    this._callDriver('cuFlushGPUDirectRDMAWrites', () => cuFlushGPUDirectRDMAWrites(0, code))
  }

  /**
   * Records an event after all current work of the context, in all streams and green contexts (`cuCtxRecordEvent`).
   * @throws TypeError for an event of another context; VersionTooOldError before CUDA 12.5; DisposedError, StatusError
   */
  record<E extends EventLike>(event: E): E {
    const { context, handle } = requireEventLike(event, 'Context.record')
    if (context._handle !== this._handle) throw wrongType('Context.record', 'event', 'an Event of this context', event)
    check(cuCtxRecordEvent(this.handle, handle), 'cuCtxRecordEvent')
    return event
  }

  /**
   * Makes all later work in all streams of the context wait for an event (`cuCtxWaitEvent`).
   * @throws TypeError; VersionTooOldError before CUDA 12.5; DisposedError, StatusError
   */
  waitEvent(event: EventLike): void {
    const { handle } = requireEventLike(event, 'Context.waitEvent')
    check(cuCtxWaitEvent(this.handle, handle), 'cuCtxWaitEvent')
  }

  /**
   * Range of stream priorities. A lower number is a higher priority (`cuCtxGetStreamPriorityRange`,
   * `cudaDeviceGetStreamPriorityRange`).
   */
  get streamPriorityRange(): { readonly least: number; readonly greatest: number } {
    const out = scratch()
    this._call('ctxGetStreamPriorityRange', out.address, out.address + 4n)
    return { least: out.i32[0] as number, greatest: out.i32[1] as number }
  }

  /** Returns a limit in its own unit, usually bytes (`cuCtxGetLimit`, `cudaDeviceGetLimit`). */
  getLimit(limit: ContextLimit): number {
    return this._getLimit(limitCode(limit, 'Context.getLimit'))
  }

  /** Requests a limit. The driver may round it (`cuCtxSetLimit`, `cudaDeviceSetLimit`). */
  setLimit(limit: ContextLimit, value: number): void {
    this._setLimit(limitCode(limit, 'Context.setLimit'), value, 'Context.setLimit')
  }

  /** @internal Returns a limit by its code. Both libraries use the same codes. */
  _getLimit(code: number): number {
    const out = scratch()
    this._call('ctxGetLimit', out, code as CUlimit)
    return Number(out.u64[0])
  }

  /** @internal */
  _setLimit(code: number, value: number, api: string): void {
    requireInteger(value, api, 'value', 0)
    this._call('ctxSetLimit', code as CUlimit, value)
  }

  /**
   * Lets kernels and copies of this context access memory of `peer` directly (`cuCtxEnablePeerAccess`,
   * `cudaDeviceEnablePeerAccess`). Enabling twice is not an error.
   * @throws StatusError when the two devices cannot access each other (see `Device.canAccessPeer`)
   */
  enablePeerAccess(peer: DeviceOrContext): void {
    this._enablePeerAccess(peer, 'Context.enablePeerAccess')
  }

  /** @internal Enables peer access. Errors name the function `api`. */
  _enablePeerAccess(peer: DeviceOrContext, api: string): void {
    addPeer(this, this.#peerAccess('ctxEnablePeerAccess', api, peer, Status.peerAccessAlreadyEnabled))
  }

  /** @internal Ordinals of the devices whose plain memory this context can access. */
  get _peers(): readonly number[] {
    return peerOrdinals(this)
  }

  /**
   * Disables access to memory of `peer`; does nothing if the access is not enabled (`cuCtxDisablePeerAccess`,
   * `cudaDeviceDisablePeerAccess`).
   */
  disablePeerAccess(peer: DeviceOrContext): void {
    this._disablePeerAccess(peer, 'Context.disablePeerAccess')
  }

  /** @internal Disables peer access. Errors name the function `api`. */
  _disablePeerAccess(peer: DeviceOrContext, api: string): void {
    removePeer(this, this.#peerAccess('ctxDisablePeerAccess', api, peer, Status.peerAccessNotEnabled))
  }

  /** Checks the peer and returns its context. */
  #peerAccess(
    call: 'ctxEnablePeerAccess' | 'ctxDisablePeerAccess',
    api: string,
    peer: DeviceOrContext,
    harmless: number,
  ): Context {
    const primaryContext = contextOf(peer, api, 'peer')
    const { ordinal } = primaryContext.device
    if (ordinal === this.device.ordinal) throw outOfRange(api, 'peer', 'another device', peer)
    const reference: DeviceReference = { ordinal, primaryContext }
    // Retain the primary context now, because only one call may follow.
    void reference.primaryContext.handle
    const status = this._status(call, reference)
    if (status !== Status.success && status !== harmless) throw this._error(status, call)
    return primaryContext
  }

  get [Symbol.toStringTag](): string {
    return 'Context'
  }

  override [inspectKey](): string {
    const { disposed } = this
    return inspectLine('Context', {
      device: this.device.ordinal,
      ...(disposed ? { disposed } : { handle: this._handle }),
    })
  }
}

/** The owner of new memory, modules and other objects. A device stands for its primary context. */
export type DeviceOrContext = Context | DeviceWithContext

/** Returns the context of a device, or the context itself. @throws TypeError for other values; DisposedError */
export function contextOf(owner: DeviceOrContext, api: string, name = 'owner'): Context {
  const hasOnlyPrototype = isForged(owner)
  const context = hasOnlyPrototype ? undefined : contextBehind(owner)
  if (context !== undefined) return context
  throw (
    otherCopy(
      hasOnlyPrototype || isProxy(owner) ? owner : (propertyOf(owner, 'primaryContext') ?? owner),
      api,
      name,
      Context,
    ) ?? wrongType(api, name, 'a Device or a Context', owner)
  )
}

/** Returns the context, or a device's context; undefined for other values. @throws DisposedError when it is gone */
export function contextBehind(owner: unknown): Context | undefined {
  let context: unknown
  try {
    context = owner instanceof Context ? owner : (owner as DeviceWithContext | null | undefined)?.primaryContext
    if (owner instanceof Context) owner._requireOpen()
  } catch (error) {
    if (!isRevoked(owner) && !isProxy(owner)) throw error
    return undefined
  }
  return context instanceof Context ? context : undefined
}

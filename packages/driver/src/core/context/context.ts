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

/** A device object of a safe package: it retains its primary context on first use. */
export interface DeviceWithContext {
  readonly ordinal: number
  /** The `CUdevice`. */
  readonly handle: CUdevice
  readonly primaryContext: Context
}

/**
 * The primary context of a device: what libcudart, NCCL and NVSHMEM use too. It is retained once for each JavaScript
 * thread and released when its device was disposed of and nothing that lives in it is left.
 */
export class Context extends ContextLifetime {
  /** @internal Where `DeviceBuffer.allocateOn` takes memory from, in the place of the device's current pool. */
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
   * Runs `fn` with this context current on the thread and restores the one that was current. Raw functions of
   * `@shoal/cuda-sys` need it; objects of this package do it themselves. `fn` must not be asynchronous.
   * @throws TypeError when `fn` gives a promise.
   */
  run<T>(fn: () => T): T {
    requireFunction(fn, 'Context.run', 'fn')
    return requireSynchronous(withContext(this.handle, fn), 'Context.run')
  }

  /**
   * Makes this context current on the thread until another one is (`cuCtxSetCurrent`). Nothing here needs it, but
   * operations of the current context save the switching, which shows in programs that launch small kernels.
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
   * Resolves when all work of the context has ended (`cuCtxSynchronize`, `cudaDeviceSynchronize`, on a native thread).
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

  /** Blocks the thread until all work of the context has ended (`cuCtxSynchronize`, `cudaDeviceSynchronize`). */
  synchronizeSync(): void {
    this._call('ctxSynchronize')
  }

  /** Version of the API the context was made with, such as 3020 (`cuCtxGetApiVersion`). */
  get apiVersion(): number {
    const out = scratch()
    check(cuCtxGetApiVersion(this.handle, out), 'cuCtxGetApiVersion')
    return out.u32[0] as number
  }

  /** A number no other context of the process has; a primary one gets a new one when it comes back (`cuCtxGetId`). */
  get id(): bigint {
    const out = scratch()
    check(cuCtxGetId(this.handle, out), 'cuCtxGetId')
    return out.u64[0] as bigint
  }

  /** How it works (`cuCtxGetFlags`). */
  get flags(): ContextFlags {
    const out = scratch()
    this._callDriver('cuCtxGetFlags', () => cuCtxGetFlags(out))
    return decodeContextFlags(out.u32[0] as number)
  }

  /**
   * Sets how it works, all flags at once: what is left out is off (`cuCtxSetFlags`).
   * @throws TypeError; VersionTooOldError before CUDA 12.1; StatusError
   */
  setFlags(flags: Partial<ContextFlags>): void {
    const encoded = encodeContextFlags(flags, 'Context.setFlags')
    this._callDriver('cuCtxSetFlags', () => cuCtxSetFlags(encoded))
  }

  /**
   * Which of shared memory and L1 cache kernels prefer to be larger, where the device has them in one
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

  /** @internal The same for another function, which errors name. */
  _setCacheConfig(config: CacheConfig, api: string): void {
    this._call('ctxSetCacheConfig', requireKeyOf(config, api, 'config', cacheConfigs))
  }

  /**
   * How many multiprocessors the context may use, where that was limited for a client of MPS (`cuCtxGetExecAffinity`).
   * @throws StatusError where it was not
   */
  get execAffinity(): number {
    const out = scratch()
    this._callDriver('cuCtxGetExecAffinity', () => cuCtxGetExecAffinity(out, 0))
    return out.u32[1] as number
  }

  /** What an access window has kept in the L2 cache is kept no longer (`cuCtxResetPersistingL2Cache`). */
  resetPersistingL2Cache(): void {
    this._callDriver('cuCtxResetPersistingL2Cache', () => cuCtxResetPersistingL2Cache())
  }

  /**
   * What other devices have written to memory of this one, as network cards do, is seen from now on
   * (`cuFlushGPUDirectRDMAWrites`): by work of this device, or with `'all-devices'` also by that of others. Needed
   * where the device's attribute `GPU_DIRECT_RDMA_WRITES_ORDERING` says less.
   * @throws TypeError; StatusError where the device has no such thing; VersionTooOldError before CUDA 11.3
   */
  flushRdmaWrites(scope: 'owner' | 'all-devices' = 'owner'): void {
    const code = requireKeyOf(scope, 'Context.flushRdmaWrites', 'scope', flushScopes)
    this._callDriver('cuFlushGPUDirectRDMAWrites', () => cuFlushGPUDirectRDMAWrites(0, code))
  }

  /**
   * Marks the end of all work that the context has now, in all its streams and green contexts (`cuCtxRecordEvent`).
   * @throws TypeError for an event of another context; VersionTooOldError before CUDA 12.5; DisposedError, StatusError
   */
  record<E extends EventLike>(event: E): E {
    const { context, handle } = requireEventLike(event, 'Context.record')
    if (context._handle !== this._handle) throw wrongType('Context.record', 'event', 'an Event of this context', event)
    check(cuCtxRecordEvent(this.handle, handle), 'cuCtxRecordEvent')
    return event
  }

  /**
   * Makes all work that is queued from now on, in all its streams, wait for an event (`cuCtxWaitEvent`).
   * @throws TypeError; VersionTooOldError before CUDA 12.5; DisposedError, StatusError
   */
  waitEvent(event: EventLike): void {
    const { handle } = requireEventLike(event, 'Context.waitEvent')
    check(cuCtxWaitEvent(this.handle, handle), 'cuCtxWaitEvent')
  }

  /**
   * The priorities streams may have; a lower number is a greater priority (`cuCtxGetStreamPriorityRange`,
   * `cudaDeviceGetStreamPriorityRange`).
   */
  get streamPriorityRange(): { readonly least: number; readonly greatest: number } {
    const out = scratch()
    this._call('ctxGetStreamPriorityRange', out.address, out.address + 4n)
    return { least: out.i32[0] as number, greatest: out.i32[1] as number }
  }

  /** Reads a limit in its own unit, mostly bytes (`cuCtxGetLimit`, `cudaDeviceGetLimit`). */
  getLimit(limit: ContextLimit): number {
    return this._getLimit(limitCode(limit, 'Context.getLimit'))
  }

  /** Asks for a limit; the driver may round it (`cuCtxSetLimit`, `cudaDeviceSetLimit`). */
  setLimit(limit: ContextLimit, value: number): void {
    this._setLimit(limitCode(limit, 'Context.setLimit'), value, 'Context.setLimit')
  }

  /** @internal The same by the code, which both libraries number alike. */
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
   * Lets kernels and copies of this context use memory of `peer` directly (`cuCtxEnablePeerAccess`,
   * `cudaDeviceEnablePeerAccess`). Enabling twice is no error.
   * @throws StatusError when the two devices cannot (`Device.canAccessPeer` tells).
   */
  enablePeerAccess(peer: DeviceOrContext): void {
    this._enablePeerAccess(peer, 'Context.enablePeerAccess')
  }

  /** @internal The same for another function, which errors name. */
  _enablePeerAccess(peer: DeviceOrContext, api: string): void {
    addPeer(this, this.#peerAccess('ctxEnablePeerAccess', api, peer, Status.peerAccessAlreadyEnabled))
  }

  /** @internal Ordinals of the devices whose plain memory it may use. */
  get _peers(): readonly number[] {
    return peerOrdinals(this)
  }

  /**
   * Ends what {@link enablePeerAccess} began; without it, does nothing (`cuCtxDisablePeerAccess`,
   * `cudaDeviceDisablePeerAccess`).
   */
  disablePeerAccess(peer: DeviceOrContext): void {
    this._disablePeerAccess(peer, 'Context.disablePeerAccess')
  }

  /** @internal The same for another function, which errors name. */
  _disablePeerAccess(peer: DeviceOrContext, api: string): void {
    removePeer(this, this.#peerAccess('ctxDisablePeerAccess', api, peer, Status.peerAccessNotEnabled))
  }

  /** Returns the other context. */
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
    // Asked for now: the call that follows must be the only one.
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

/** What can be named where memory or a module is made: a device means its primary context. */
export type DeviceOrContext = Context | DeviceWithContext

/** The context of a device, or the context itself, alive. @throws TypeError for anything else, DisposedError */
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

/**
 * The context itself, or that of a device; undefined where it is neither. @throws DisposedError for one that is gone.
 */
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

import {
  type CUcontext,
  type CUdevice,
  type CUevent,
  type CUlimit,
  type CUstream,
  cuCtxGetApiVersion,
  cuCtxGetCurrent,
  cuCtxSetCurrent,
  cuDevicePrimaryCtxRelease,
  cuDevicePrimaryCtxRetain,
  cuEventCreate,
  cuEventDestroy,
  cuEventRecord,
  ensureContextFunctions,
  withContext,
} from '@shoal/cuda-sys/driver/common'
import { callInContext, offThread } from '@shoal/ffi'
import {
  DisposedError,
  inspectKey,
  inspectLine,
  isRevoked,
  loadedFrom,
  otherCopy,
  outOfRange,
  propertyOf,
  requireFunction,
  requireInteger,
  wrongType,
} from '@shoal/types'
import type { CallName, CudaCalls, CudaLibrary, DeviceReference } from '../calls/cudaLibrary.js'
import type { Device } from '../device/device.js'
import { check, checkRelease, isGone, Status } from '../errors.js'
import { processIsEnding, throwFirst, tidyUpAtEnd, warnAtEnd } from '../lifetime.js'
import type { StreamAllocator } from '../memory/streamAllocator.js'
import { scratch } from '../native.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'
import { DeviceInUseError } from './deviceInUse.js'
import { type ContextLimit, limitCode } from './limits.js'
import { hasHolds } from './primaryContexts.js'

const eventDisableTiming = 2
/** `CU_STREAM_LEGACY`: done when all streams but non-blocking ones are. */
const legacyStream = 1n as CUstream

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
export class Context {
  static readonly [loadedFrom]: string = import.meta.url

  /** The device it is of. */
  readonly device: Device
  /** @internal The library that is called for what lives here. */
  readonly _cuda: CudaLibrary
  /** @internal The handle without the check that the context is still there. */
  readonly _handle: CUcontext
  /** @internal The handle in two halves, for calls without a bigint. */
  readonly _halves: U64Halves
  /** @internal Ordinals of the devices whose memory kernels of this context may use. */
  readonly _peers = new Set<number>()
  #isClosing = false
  /** What errors call it once it was released or reset. */
  #gone: string | undefined
  #children = 0
  #pendingWaits = 0
  readonly #idleEvents: CUevent[] = []
  /** Events behind the work of streams that were disposed of. */
  readonly #leftBehind: CUevent[] = []
  readonly #beforeClose = new Set<CloseHandler>()
  readonly #movedMemory = new Set<() => boolean>()
  readonly #whenIdle: (() => void)[] = []
  /** @internal What gives memory back that is kept for later; whether it had any. */
  readonly _whenShort = new Set<() => boolean>()
  /** @internal Where `DeviceBuffer.allocateOn` takes memory from, in the place of the device's current pool. */
  _allocator: StreamAllocator | undefined

  private constructor(device: Device, handle: CUcontext) {
    this.device = device
    this._handle = handle
    this._halves = halvesOf(handle)
    this._cuda = device._cuda
    ensureContextFunctions()
    if (!isTidiedUp) {
      isTidiedUp = true
      tidyUpAtEnd(closeContextsOfThread)
    }
    living.add(this)
  }

  /** @internal Retains the primary context of a device. */
  static _retainPrimary(device: Device): Context {
    const out = scratch()
    check(cuDevicePrimaryCtxRetain(out, device.handle), 'cuDevicePrimaryCtxRetain')
    return new Context(device, out.u64[0] as CUcontext)
  }

  /** The `CUcontext`. @throws DisposedError when the context was released or reset. */
  get handle(): CUcontext {
    this._requireAlive()
    return this._handle
  }

  /** Whether the context was released or reset. */
  get disposed(): boolean {
    return this.#gone !== undefined
  }

  /**
   * Runs `fn` with this context current on the thread and restores the one that was current. Raw functions of
   * `@shoal/cuda-sys` need it; objects of this package do it themselves. `fn` must not be asynchronous.
   * @throws TypeError when `fn` gives a promise.
   */
  run<T>(fn: () => T): T {
    requireFunction(fn, 'Context.run', 'fn')
    const result = withContext(this.handle, fn)
    if (typeof (result as { then?: unknown } | null | undefined)?.then !== 'function') return result
    // What it rejects with, if so, is not the program's mistake that is reported here.
    Promise.resolve(result).catch(() => undefined)
    throw new TypeError('Context.run: fn must be a synchronous function, not one that gives a promise')
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

  /** Resolves when all work of the context has ended (`cuCtxSynchronize`, `cudaDeviceSynchronize`, on a native thread). */
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
    this._peers.add(this.#peerAccess('ctxEnablePeerAccess', api, peer, Status.peerAccessAlreadyEnabled))
  }

  /** Ends what {@link enablePeerAccess} began; without it, does nothing (`cuCtxDisablePeerAccess`, `cudaDeviceDisablePeerAccess`). */
  disablePeerAccess(peer: DeviceOrContext): void {
    this._disablePeerAccess(peer, 'Context.disablePeerAccess')
  }

  /** @internal The same for another function, which errors name. */
  _disablePeerAccess(peer: DeviceOrContext, api: string): void {
    this._peers.delete(this.#peerAccess('ctxDisablePeerAccess', api, peer, Status.peerAccessNotEnabled))
  }

  /** Gives the ordinal of the other device. */
  #peerAccess(
    call: 'ctxEnablePeerAccess' | 'ctxDisablePeerAccess',
    api: string,
    peer: DeviceOrContext,
    harmless: number,
  ): number {
    const primaryContext = contextOf(peer, api, 'peer')
    const { ordinal } = primaryContext.device
    if (ordinal === this.device.ordinal) throw outOfRange(api, 'peer', 'another device', peer)
    const reference: DeviceReference = { ordinal, primaryContext }
    // Asked for now: the call that follows must be the only one.
    void reference.primaryContext.handle
    const status = this._status(call, reference)
    if (status !== Status.success && status !== harmless) throw this._error(status, call)
    return ordinal
  }

  get [Symbol.toStringTag](): string {
    return 'Context'
  }

  [inspectKey](): string {
    const { disposed } = this
    return inspectLine('Context', {
      device: this.device.ordinal,
      ...(disposed ? { disposed } : { handle: this._handle }),
    })
  }

  /** @internal */
  _requireAlive(): void {
    if (this.#gone !== undefined) throw new DisposedError(this.#gone)
  }

  /** @internal The error for a status of one of the shared functions. */
  _error(status: number, call: CallName, detail?: string): Error {
    return this._cuda.error(status, this._cuda.nameOf(call), detail)
  }

  /** @internal Calls one function of the library, exactly one, with this context current. Gives its status. */
  _status<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): number {
    callInContext(this.handle)
    return this.#make(call, args)
  }

  /** @internal The same, and checks the status. @throws StatusError */
  _call<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): void {
    callInContext(this.handle)
    const status = this.#make(call, args)
    if (status !== Status.success) throw this._error(status, call)
  }

  /** @internal The same for a function that allocates: once more where caches gave memory back. @throws StatusError */
  _callWithRoom<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): void {
    const status = this._status(call, ...args)
    if (status === Status.success) return
    if (status !== Status.outOfMemory || !this._makeRoom()) throw this._error(status, call)
    this._call(call, ...args)
  }

  /** @internal Has caches give back what they keep. Gives whether there was any. */
  _makeRoom(): boolean {
    let hasMore = false
    for (const giveBack of this._whenShort) hasMore = giveBack() || hasMore
    return hasMore
  }

  /** @internal Calls one releasing function, exactly one; does nothing when the context is gone, and what it held with it. */
  _release<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): void {
    if (this.disposed || processIsEnding()) return
    callInContext(this._handle)
    const status = this.#make(call, args)
    if (status !== Status.success && !isGone(status)) throw this._error(status, call)
  }

  #make(call: CallName, args: readonly unknown[]): number {
    try {
      return (this._cuda.calls[call] as (...args: readonly unknown[]) => number)(...args)
    } catch (error) {
      // A function the library does not have: the next call must not be made in this context.
      callInContext(0n)
      throw error
    }
  }

  /** @internal The same for one function that libcuda alone has. */
  _callDriver(api: string, call: () => number): void {
    callInContext(this.handle)
    let status: number
    try {
      status = call()
    } catch (error) {
      callInContext(0n)
      throw error
    }
    check(status, api)
  }

  /** @internal Something that lives in this context came to be. */
  _addChild(): void {
    this.#children += 1
  }

  /** @internal Something that lived in this context is gone. */
  _removeChild(): void {
    this.#children -= 1
    this.#closeIfUnused()
  }

  /** @internal */
  _addWait(): void {
    this.#pendingWaits += 1
    this._addChild()
  }

  /** @internal */
  _endWait(): void {
    this.#pendingWaits -= 1
    if (this.#pendingWaits === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
    this._removeChild()
  }

  /** @internal Runs `handler` before the context is released or reset. Gives what takes it back. */
  _beforeClose(handler: CloseHandler): () => void {
    this.#beforeClose.add(handler)
    return () => this.#beforeClose.delete(handler)
  }

  /**
   * @internal While `isMoved` says yes, arrays out of our reach look into page-locked memory of the context, which then
   * must not be reset. Gives what takes it back.
   */
  _watchMovedMemory(isMoved: () => boolean): () => void {
    this.#movedMemory.add(isMoved)
    return () => this.#movedMemory.delete(isMoved)
  }

  /** @internal An event without timing, from the pool. */
  _takeEvent(): CUevent {
    const idle = this.#idleEvents.pop()
    if (idle !== undefined) return idle
    const out = scratch()
    this._callDriver('cuEventCreate', () => cuEventCreate(out, eventDisableTiming))
    return out.u64[0] as CUevent
  }

  /** @internal Gives back an event that nothing waits for any more. */
  _returnEvent(event: CUevent): void {
    if (!this.disposed) this.#idleEvents.push(event)
  }

  /**
   * @internal A stream is about to be destroyed. Nothing can be asked of it afterwards, so an event tells when the work that it
   * may still have has ended.
   */
  _leaveBehind(stream: CUstream): void {
    for (const event of this.#leftBehind.splice(0)) {
      if (this._status('eventQuery', event) === Status.notReady) this.#leftBehind.push(event)
      else this.#idleEvents.push(event)
    }
    if (this._status('streamQuery', stream) !== Status.notReady) return
    const event = this._takeEvent()
    this._callDriver('cuEventRecord', () => cuEventRecord(event, stream))
    this.#leftBehind.push(event)
  }

  /** Whether work may be under way: in the default stream and all that it waits for, or in streams that were disposed of. */
  #hasWork(): boolean {
    if (this._status('streamQuery', legacyStream) !== Status.success) return true
    return this.#leftBehind.some((event) => this._status('eventQuery', event) !== Status.success)
  }

  /** @internal The device was disposed of: release as soon as nothing lives here. */
  _close(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#closeIfUnused()
  }

  /** @internal The contexts of a device this thread has retained and not yet released: more than one after dispose(). */
  static _livingOn(device: { readonly ordinal: number }): Context[] {
    return [...living].filter((context) => context.device.ordinal === device.ordinal)
  }

  /** @internal Resolves when nothing waits in this context; false when nothing did. */
  async _whenIdle(): Promise<boolean> {
    if (this.#pendingWaits === 0) return false
    await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
    // Whoever waited gets to know before everything is gone.
    await new Promise<void>((resolve) => setImmediate(resolve))
    return true
  }

  /** @internal @throws DeviceInUseError while arrays nobody can detach look into memory of the context. */
  _requireResettable(): void {
    for (const isMoved of this.#movedMemory) {
      if (!isMoved()) continue
      throw new DeviceInUseError({
        deviceOrdinal: this.device.ordinal,
        reason:
          'cannot be reset while the ArrayBuffer of a PinnedBuffer that was moved with transfer() can be read; ' +
          'drop it first, or keep such data in an ordinary array',
      })
    }
  }

  /** @internal Everything in the context is about to go: detaches and forgets it, without a call that could wait. */
  _markReset(): void {
    this.#closeDown('reset')
  }

  /** @internal Gives up what this thread retained. A reset does not, unless the driver counts it as given up. */
  _releaseAfterReset(): void {
    const status: number = cuDevicePrimaryCtxRelease(this.device.handle)
    if (status !== Status.invalidContext) checkRelease(status, 'cuDevicePrimaryCtxRelease')
  }

  /**
   * @internal The JavaScript thread ends: what is idle is freed, and the context released unless something lives in it that
   * others may still use. At the end of the process nothing is done where work may be in flight: freeing would wait for it.
   */
  _endOfThread(isProcess: boolean): void {
    if (this.disposed) return
    if (isProcess && (this.#children > 0 || this.#hasWork())) return
    if (this.#children > 0) {
      for (const handler of this.#beforeClose) handler('thread-end')
      this.#destroyIdleEvents()
    } else {
      this.#isClosing = true
      this.#closeIfUnused()
    }
  }

  #closeIfUnused(): void {
    if (!this.#isClosing || this.disposed || this.#children > 0 || processIsEnding()) return
    try {
      this.#closeDown('close')
    } finally {
      checkRelease(cuDevicePrimaryCtxRelease(this.device.handle), 'cuDevicePrimaryCtxRelease')
    }
  }

  /** Afterwards the context counts as gone, whatever the handlers threw. */
  #closeDown(reason: 'close' | 'reset'): void {
    const failures: unknown[] = []
    const attempt = (fn: () => void): void => {
      try {
        fn()
      } catch (error) {
        failures.push(error)
      }
    }
    for (const handler of [...this.#beforeClose]) attempt(() => handler(reason))
    this.#beforeClose.clear()
    this.#movedMemory.clear()
    if (reason === 'close') attempt(() => this.#destroyIdleEvents())
    else this.#idleEvents.length = this.#leftBehind.length = 0
    this.#gone = reason === 'close' ? 'Context' : 'Context (its device was reset)'
    living.delete(this)
    throwFirst(`The context of device ${this.device.ordinal}`, failures)
  }

  #destroyIdleEvents(): void {
    const events = [...this.#idleEvents.splice(0), ...this.#leftBehind.splice(0)]
    if (events.length === 0) return
    const status = withContextForRelease(this._handle, () => {
      let first: number = Status.success
      for (const event of events) {
        const status: number = cuEventDestroy(event)
        if (first === Status.success) first = status
      }
      return first
    })
    checkRelease(status, 'cuEventDestroy')
  }
}

/**
 * Why a context is closed down: it is released; reset, when nothing needs freeing and nothing may wait; or its JavaScript
 * thread ends, when only what is idle goes.
 */
export type CloseReason = 'close' | 'reset' | 'thread-end'
type CloseHandler = (reason: CloseReason) => void

const living = new Set<Context>()
let isTidiedUp = false

/** Called when the JavaScript thread ends. Nobody is left to catch an error: it is a warning, where the process goes on. */
function closeContextsOfThread(isProcess: boolean): void {
  if (isProcess && hasHolds()) return
  for (const context of [...living]) {
    try {
      context._endOfThread(isProcess)
    } catch (error) {
      if (!isProcess) warnAtEnd(`The context of device ${context.device.ordinal}`, error)
    }
  }
}

/** What can be named where memory or a module is made: a device means its primary context. */
export type DeviceOrContext = Context | DeviceWithContext

/** The context of a device, or the context itself, alive. @throws TypeError for anything else, DisposedError */
export function contextOf(owner: DeviceOrContext, api: string, name = 'owner'): Context {
  const context = contextBehind(owner)
  if (context !== undefined) return context
  throw (
    otherCopy(propertyOf(owner, 'primaryContext') ?? owner, api, name, Context) ??
    wrongType(api, name, 'a Device or a Context', owner)
  )
}

/** The context itself, or that of a device; undefined where it is neither. @throws DisposedError for one that is gone. */
export function contextBehind(owner: unknown): Context | undefined {
  let context: unknown
  try {
    context = owner instanceof Context ? owner : (owner as DeviceWithContext | null | undefined)?.primaryContext
  } catch (error) {
    if (!isRevoked(owner)) throw error
  }
  if (!(context instanceof Context)) return undefined
  if (context === owner) context._requireAlive()
  return context
}

function withContextForRelease(handle: CUcontext, call: () => number): number {
  try {
    return withContext(handle, call)
  } catch (error) {
    const status = (error as { status?: unknown }).status
    if (typeof status === 'number' && isGone(status)) return status
    throw error
  }
}

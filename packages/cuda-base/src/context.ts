import {
  type CUcontext,
  type CUdevice,
  type CUevent,
  CUlimit,
  cuCtxDisablePeerAccess,
  cuCtxEnablePeerAccess,
  cuCtxGetApiVersion,
  cuCtxGetCurrent,
  cuCtxGetLimit,
  cuCtxGetStreamPriorityRange,
  cuCtxSetCurrent,
  cuCtxSetLimit,
  cuCtxSynchronize,
  cuDevicePrimaryCtxRelease,
  cuDevicePrimaryCtxRetain,
  cuEventCreate,
  cuEventDestroy,
  ensureContextFunctions,
  withContext,
} from '@shoal/cuda-sys/driver'
import { callInContext, offThread } from '@shoal/ffi'
import { DisposedError, describeValue } from '@shoal/types'
import { requireInteger } from './checks.js'
import { DeviceInUseError } from './deviceInUse.js'
import { check, checkRelease, driverErrors, isGone, Status, type StatusErrors } from './errors.js'
import { processIsEnding, throwFirst, warnAtEnd } from './lifetime.js'
import { scratch } from './native.js'
import { type Words, wordsOf } from './words.js'

const eventDisableTiming = 2

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** The limits of a context: `CUlimit` without its prefix. */
export type ContextLimit = Exclude<WithoutPrefix<keyof typeof CUlimit, 'CU_LIMIT_'>, 'MAX'>

/** The device of a context, as this package needs to know it. */
export interface ContextDevice {
  readonly ordinal: number
  /** The `CUdevice`. */
  readonly handle: CUdevice
}

/** A device object of a safe package: it retains its primary context on first use. */
export interface DeviceWithContext extends ContextDevice {
  readonly primaryContext: Context
}

/**
 * The primary context of a device: what libcudart, NCCL and NVSHMEM use too. It is retained once for each JavaScript
 * thread and released when its device was disposed of and nothing that lives in it is left.
 */
export class Context<D extends ContextDevice = ContextDevice> {
  readonly device: D
  /** @internal The handle without the check that the context is still there. */
  readonly _handle: CUcontext
  /** @internal The handle in two halves, for calls without a bigint. */
  readonly _words: Words
  /** @internal Ordinals of the devices whose memory kernels of this context may use. */
  readonly _peers = new Set<number>()
  #state: 'open' | 'closing' | 'closed' | 'reset' = 'open'
  #children = 0
  #pendingWaits = 0
  readonly #idleEvents: CUevent[] = []
  readonly #beforeClose = new Set<CloseHandler>()
  readonly #movedMemory = new Set<() => boolean>()
  readonly #whenIdle: (() => void)[] = []

  private constructor(device: D, handle: CUcontext) {
    this.device = device
    this._handle = handle
    this._words = wordsOf(handle)
    ensureContextFunctions()
    living.add(this)
  }

  /** @internal Retains the primary context of a device. */
  static _retainPrimary<D extends ContextDevice>(device: D): Context<D> {
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
    return this.#state === 'closed' || this.#state === 'reset'
  }

  /**
   * Runs `fn` with this context current on the thread and restores the one that was current. Raw functions of
   * `@shoal/cuda-sys` need it; objects of this package do it themselves. `fn` must not be asynchronous.
   * @throws TypeError when `fn` gives a promise.
   */
  run<T>(fn: () => T): T {
    if (typeof fn !== 'function') throw new TypeError(`fn must be a function, not ${describeValue(fn)}`)
    const result = withContext(this.handle, fn)
    if (typeof (result as { then?: unknown } | null | undefined)?.then !== 'function') return result
    // What it rejects with, if so, is not the program's mistake that is reported here.
    Promise.resolve(result).catch(() => undefined)
    throw new TypeError('fn must not be asynchronous: the context is current only until it returns')
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

  /** Resolves when all work of the context has ended (`cuCtxSynchronize`, on a native thread). */
  async synchronize(): Promise<void> {
    const handle = this.handle
    this._addWait()
    try {
      const [status = Status.success] = await offThread({ context: handle }, () => cuCtxSynchronize())
      check(status, 'cuCtxSynchronize')
    } finally {
      this._endWait()
    }
  }

  /** Blocks the thread until all work of the context has ended (`cuCtxSynchronize`). */
  synchronizeSync(): void {
    this._call('cuCtxSynchronize', () => cuCtxSynchronize())
  }

  /** Version of the API the context was made with, such as 3020 (`cuCtxGetApiVersion`). */
  get apiVersion(): number {
    const out = scratch()
    check(cuCtxGetApiVersion(this.handle, out), 'cuCtxGetApiVersion')
    return out.u32[0] as number
  }

  /** The priorities streams may have; a lower number is a greater priority (`cuCtxGetStreamPriorityRange`). */
  get streamPriorityRange(): { readonly least: number; readonly greatest: number } {
    const out = scratch()
    this._call('cuCtxGetStreamPriorityRange', () => cuCtxGetStreamPriorityRange(out.address, out.address + 4n))
    return { least: out.i32[0] as number, greatest: out.i32[1] as number }
  }

  /** Reads a limit, in its own unit, mostly bytes (`cuCtxGetLimit`). */
  getLimit(limit: ContextLimit): number {
    const code = limitCode(limit)
    const out = scratch()
    this._call('cuCtxGetLimit', () => cuCtxGetLimit(out, code))
    return Number(out.u64[0])
  }

  /** Asks for a limit; the driver may round it (`cuCtxSetLimit`). */
  setLimit(limit: ContextLimit, value: number): void {
    const code = limitCode(limit)
    requireInteger(value, 'value', 0, Number.MAX_SAFE_INTEGER)
    this._call('cuCtxSetLimit', () => cuCtxSetLimit(code, value))
  }

  /**
   * Lets kernels and copies of this context use memory of `peer` directly (`cuCtxEnablePeerAccess`). Enabling twice is
   * no error. @throws StatusError when the two devices cannot (`Device.canAccessPeer` tells).
   */
  enablePeerAccess(peer: DeviceWithContext): void {
    const peerContext = peerContextOf(peer).handle
    if (peer.ordinal === this.device.ordinal) throw new RangeError('a device is no peer of itself')
    withContext(this.handle, () => {
      const status: number = cuCtxEnablePeerAccess(peerContext, 0)
      if (status !== Status.peerAccessAlreadyEnabled) check(status, 'cuCtxEnablePeerAccess')
    })
    this._peers.add(peer.ordinal)
  }

  /** Ends what {@link enablePeerAccess} began; without it, does nothing (`cuCtxDisablePeerAccess`). */
  disablePeerAccess(peer: DeviceWithContext): void {
    const peerContext = peerContextOf(peer).handle
    withContext(this.handle, () => {
      const status: number = cuCtxDisablePeerAccess(peerContext)
      if (status !== Status.peerAccessNotEnabled) check(status, 'cuCtxDisablePeerAccess')
    })
    this._peers.delete(peer.ordinal)
  }

  /** @internal */
  _requireAlive(): void {
    if (this.#state === 'closed') throw new DisposedError('Context')
    if (this.#state === 'reset') throw new DisposedError('Context (its device was reset)')
  }

  /** @internal Calls one C function, exactly one, with this context current and checks its status. */
  _call(api: string, call: () => number, errors: StatusErrors = driverErrors): void {
    callInContext(this.handle)
    let status: number
    try {
      status = call()
    } catch (error) {
      // A function the driver does not have: the next call must not be made in this context.
      callInContext(0n)
      throw error
    }
    errors.check(status, api)
  }

  /** @internal Calls one releasing function, exactly one; does nothing when the context is gone, and what it held with it. */
  _release(api: string, call: () => number, errors: StatusErrors = driverErrors): void {
    if (this.disposed || processIsEnding()) return
    callInContext(this._handle)
    let status: number
    try {
      status = call()
    } catch (error) {
      // As in _call.
      callInContext(0n)
      throw error
    }
    errors.checkRelease(status, api)
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
    this._call('cuEventCreate', () => cuEventCreate(out, eventDisableTiming))
    return out.u64[0] as CUevent
  }

  /** @internal Gives back an event that nothing waits for any more. */
  _returnEvent(event: CUevent): void {
    if (!this.disposed) this.#idleEvents.push(event)
  }

  /** @internal The device was disposed of: release as soon as nothing lives here. */
  _close(): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    this.#closeIfUnused()
  }

  /** @internal The contexts of a device this thread has retained and not yet released: more than one after dispose(). */
  static _livingOn(device: ContextDevice): Context[] {
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
        device: this.device.ordinal,
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
   * @internal The JavaScript thread ends while the process goes on: what is idle is freed, and the context released
   * unless something lives in it that others may still use.
   */
  _endOfThread(): void {
    if (this.disposed) return
    if (this.#children > 0) {
      for (const handler of this.#beforeClose) handler('thread-end')
      this.#destroyIdleEvents()
    } else {
      this.#state = 'closing'
      this.#closeIfUnused()
    }
  }

  #closeIfUnused(): void {
    if (this.#state !== 'closing' || this.#children > 0 || processIsEnding()) return
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
    else this.#idleEvents.length = 0
    this.#state = reason === 'close' ? 'closed' : 'reset'
    living.delete(this)
    throwFirst(`The context of device ${this.device.ordinal}`, failures)
  }

  #destroyIdleEvents(): void {
    const events = this.#idleEvents.splice(0)
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

/** Called when the JavaScript thread ends but not the process. Nobody is left to catch an error: it is a warning. */
export function closeContextsOfThread(): void {
  for (const context of [...living]) {
    try {
      context._endOfThread()
    } catch (error) {
      warnAtEnd(`The context of device ${context.device.ordinal}`, error)
    }
  }
}

/** A context itself, or a TypeError. */
export function requireContext(value: unknown): Context {
  if (!(value instanceof Context)) throw new TypeError(`context must be a Context, not ${describeValue(value)}`)
  return value
}

/** What can be named where memory or a module is made: a device means its primary context. */
export type ContextSource = Context | DeviceWithContext

/** The context of a device or the context itself; a TypeError for anything else. */
export function contextOf(source: ContextSource): Context {
  if (source instanceof Context) {
    source._requireAlive()
    return source
  }
  const context: unknown = (source as DeviceWithContext | undefined)?.primaryContext
  if (context instanceof Context) return context
  throw new TypeError(`expected a Device or a Context, not ${describeValue(source)}`)
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

function peerContextOf(peer: DeviceWithContext): Context {
  const context: unknown = (peer as DeviceWithContext | null | undefined)?.primaryContext
  if (context instanceof Context) return context
  throw new TypeError(`peer must be a Device, not ${describeValue(peer)}`)
}

function limitCode(limit: ContextLimit): CUlimit {
  const name = `CU_LIMIT_${String(limit)}`
  if (limit === ('MAX' as string) || !Object.hasOwn(CUlimit, name)) {
    throw new TypeError(`unknown limit ${describeValue(limit)}`)
  }
  return (CUlimit as Readonly<Record<string, CUlimit>>)[name] as CUlimit
}

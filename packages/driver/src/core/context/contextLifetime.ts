import { type CUcontext, cuDevicePrimaryCtxRelease, ensureContextFunctions } from '@shoal/cuda-sys/driver'
import { nextTurn } from '@shoal/ffi'
import { holdEventLoop } from '@shoal/ffi/calls'
import { loadedFrom } from '@shoal/types'
import { checkRelease, Status } from '../errors.js'
import { processIsEnding, throwFirst, tidyUpAtEnd, warnAtEnd } from '../lifetime.js'
import { withBlockingReleases } from '../releasing.js'
import { ContextCalls } from './contextCalls.js'
import { DeviceInUseError } from './deviceInUse.js'
import { EventPool } from './eventPool.js'
import { hasHolds } from './primaryContexts.js'
import { finishReleasesSync, type ReleaseCall, ReleaseQueue } from './releases.js'

/**
 * Why a context closes. `'close'`: the context is released. `'reset'`: nothing needs freeing, and nothing may wait.
 * `'thread-end'`: the JavaScript thread ends, so only idle resources are freed.
 */
export type CloseReason = 'close' | 'reset' | 'thread-end'
type CloseHandler = (reason: CloseReason) => void

/** How long a thread's end waits for the release of disposed objects, in milliseconds. */
const patienceAtEnd = 1000

const living = new Set<ContextLifetime>()
let isTidiedUp = false

/**
 * Closes all contexts when the JavaScript thread ends. No caller could catch an error, so errors become warnings if the
 * process continues.
 */
function closeContextsOfThread(isProcess: boolean): void {
  if (isProcess && hasHolds()) return
  finishReleasesSync(patienceAtEnd)
  for (const context of [...living]) {
    try {
      context._endOfThread(isProcess)
    } catch (error) {
      if (!isProcess) warnAtEnd(`The context of device ${context.device.ordinal}`, error)
    }
  }
}

/** Tracks the objects and waits of a context, and ends the context. */
export abstract class ContextLifetime extends ContextCalls {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** @internal */
  readonly _events = new EventPool(this)
  /** @internal Releases that wait for the device. */
  readonly _releases = new ReleaseQueue(this)
  #isClosing = false
  #children = 0
  /** Number of children that are events. Events do not indicate work in flight. */
  #userEvents = 0
  #pendingWaits = 0
  readonly #beforeClose = new Set<CloseHandler>()
  readonly #movedMemory = new Set<() => boolean>()
  readonly #whenIdle: (() => void)[] = []

  constructor(device: ContextCalls['device'], handle: CUcontext) {
    super(device, handle)
    ensureContextFunctions()
    if (!isTidiedUp) {
      isTidiedUp = true
      tidyUpAtEnd(closeContextsOfThread)
    }
    living.add(this)
  }

  /** @internal Counts a new object of this context. */
  _addChild(): void {
    this.#children += 1
  }

  /** @internal Removes objects from the count. */
  _removeChild(count = 1): void {
    this.#children -= count
    this.#closeIfUnused()
  }

  /** @internal */
  _addEvent(): void {
    this.#userEvents += 1
    this._addChild()
  }

  /** @internal */
  _removeEvent(): void {
    this.#userEvents -= 1
    this._removeChild()
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

  /** @internal Runs `handler` before the context is released or reset. Returns a function that removes the handler. */
  _beforeClose(handler: CloseHandler): () => void {
    this.#beforeClose.add(handler)
    return () => this.#beforeClose.delete(handler)
  }

  /**
   * @internal Prevents a reset while `isMoved` returns true: arrays that Shoal cannot detach then use page-locked
   * memory of the context. Returns a function that ends the check.
   */
  _watchMovedMemory(isMoved: () => boolean): () => void {
    this.#movedMemory.add(isMoved)
    return () => this.#movedMemory.delete(isMoved)
  }

  /** @internal The device was disposed of. Releases the context when its last object is gone. */
  _close(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#closeIfUnused()
  }

  /** @internal Whether this is the primary context of its device, which `Device.reset()` destroys. */
  get _isPrimary(): boolean {
    return true
  }

  /** @internal Returns this thread's context with the given handle. */
  static _living(handle: bigint): ContextLifetime | undefined {
    for (const context of living) if (context._handle === handle) return context
    return undefined
  }

  /**
   * @internal Returns the primary contexts of a device that this thread retained and has not released. After dispose()
   * there can be more than one.
   */
  static _livingOn(device: { readonly ordinal: number }): ContextLifetime[] {
    return [...living].filter((context) => context._isPrimary && context.device.ordinal === device.ordinal)
  }

  /**
   * @internal The call that releases the handle after the last object is gone; undefined if another owner has the
   * handle.
   */
  get _giveUp(): ReleaseCall | undefined {
    const { handle } = this.device
    return {
      make: () => cuDevicePrimaryCtxRelease(handle),
      check: (status) => checkRelease(status, 'cuDevicePrimaryCtxRelease'),
      context: null,
    }
  }

  /** @internal Resolves when no wait is pending in this context. Resolves to false if none was pending. */
  async _whenIdle(): Promise<boolean> {
    if (this.#pendingWaits === 0) return false
    // An abandoned wait does not keep the process alive, so this function must.
    const release = holdEventLoop(undefined)
    await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
    release()
    // The waiters continue before the caller destroys the context.
    await nextTurn()
    return true
  }

  /** @internal Throws while an array that cannot be detached uses memory of the context. @throws DeviceInUseError */
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

  /** @internal Detaches and forgets everything before a reset, without a call that could wait. */
  _markReset(): void {
    this.#closeDown('reset')
  }

  /**
   * @internal Releases this thread's hold after a reset. The reset itself keeps the hold, unless the driver counts the
   * hold as released.
   */
  _releaseAfterReset(): void {
    const status: number = cuDevicePrimaryCtxRelease(this.device.handle)
    if (status !== Status.invalidContext) checkRelease(status, 'cuDevicePrimaryCtxRelease')
  }

  /**
   * @internal Frees idle resources when the JavaScript thread ends, and releases the context unless other users may
   * still use one of its objects. At the end of the process, does nothing while work may be in flight: freeing would
   * wait for the work.
   */
  _endOfThread(isProcess: boolean): void {
    if (this.disposed) return
    if (isProcess && (this.#children > this.#userEvents || this._events.hasWork())) return
    if (this.#children > 0) {
      for (const handler of this.#beforeClose) handler('thread-end')
      this._events.destroyAll()
    } else {
      this.#isClosing = true
      withBlockingReleases(() => this.#closeIfUnused())
    }
  }

  #closeIfUnused(): void {
    if (!this.#isClosing || this.disposed || this.#children > 0 || processIsEnding()) return
    const calls: ReleaseCall[] = []
    this._closingCalls = calls
    try {
      this.#closeDown('close')
    } finally {
      this._closingCalls = undefined
      this._releases.close(`The context of device ${this.device.ordinal}`, calls, this._giveUp)
    }
  }

  /** Closes the context. The context counts as gone afterwards, even if handlers throw. */
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
    if (reason === 'close') attempt(() => this._events.destroyAll())
    else this._events.forgetAll()
    this._markGone(reason === 'close' ? 'Context' : 'Context (its device was reset)')
    living.delete(this)
    throwFirst(`The context of device ${this.device.ordinal}`, failures)
  }
}

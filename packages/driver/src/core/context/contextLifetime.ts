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
 * Why a context is closed down: it is released; reset, when nothing needs freeing and nothing may wait; or its
 * JavaScript thread ends, when only what is idle goes.
 */
export type CloseReason = 'close' | 'reset' | 'thread-end'
type CloseHandler = (reason: CloseReason) => void

/**
 * What was disposed of just before the thread ends is still given back, unless the device works for longer. In
 * milliseconds.
 */
const patienceAtEnd = 1000

const living = new Set<ContextLifetime>()
let isTidiedUp = false

/**
 * Called when the JavaScript thread ends. Nobody is left to catch an error: it is a warning, where the process goes on.
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

/** What lives in a context and waits in it, and how the context ends. */
export abstract class ContextLifetime extends ContextCalls {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** @internal */
  readonly _events = new EventPool(this)
  /** @internal What waits for the device before it is given back. */
  readonly _releases = new ReleaseQueue(this)
  #isClosing = false
  #children = 0
  /** Those of the children that are events: none of them stands for work that may be under way. */
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

  /** @internal Something that lives in this context came to be. */
  _addChild(): void {
    this.#children += 1
  }

  /** @internal Something that lived in this context is gone. */
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

  /** @internal The device was disposed of: release as soon as nothing lives here. */
  _close(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#closeIfUnused()
  }

  /** @internal Whether it is its device's primary one, which a reset of the device ends. */
  get _isPrimary(): boolean {
    return true
  }

  /** @internal What is given for a handle that this thread knows. */
  static _living(handle: bigint): ContextLifetime | undefined {
    for (const context of living) if (context._handle === handle) return context
    return undefined
  }

  /**
   * @internal The primary contexts of a device this thread has retained and not yet released: more than one after
   * dispose().
   */
  static _livingOn(device: { readonly ordinal: number }): ContextLifetime[] {
    return [...living].filter((context) => context._isPrimary && context.device.ordinal === device.ordinal)
  }

  /** @internal Gives the handle up, when nothing lives in the context any more: no call where it is somebody else's. */
  get _giveUp(): ReleaseCall | undefined {
    const { handle } = this.device
    return {
      make: () => cuDevicePrimaryCtxRelease(handle),
      check: (status) => checkRelease(status, 'cuDevicePrimaryCtxRelease'),
      context: null,
    }
  }

  /** @internal Resolves when nothing waits in this context; false when nothing did. */
  async _whenIdle(): Promise<boolean> {
    if (this.#pendingWaits === 0) return false
    // A wait that was given up does not keep the process alive until its work has ended.
    const release = holdEventLoop(undefined)
    await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
    release()
    // Whoever waited gets to know before everything is gone.
    await nextTurn()
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
   * @internal The JavaScript thread ends: what is idle is freed, and the context released unless something lives in it
   * that others may still use. At the end of the process nothing is done where work may be in flight: freeing would
   * wait for it.
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
    if (reason === 'close') attempt(() => this._events.destroyAll())
    else this._events.forgetAll()
    this._markGone(reason === 'close' ? 'Context' : 'Context (its device was reset)')
    living.delete(this)
    throwFirst(`The context of device ${this.device.ordinal}`, failures)
  }
}

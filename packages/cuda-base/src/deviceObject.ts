import { isMainThread } from 'node:worker_threads'
import type { CUdevice } from '@shoal/cuda-sys/driver'
import { offThread } from '@shoal/ffi'
import { type DeviceLike, describeValue, deviceProtocol } from '@shoal/types'
import { Context, type DeviceWithContext } from './context.js'
import { DeviceInUseError } from './deviceInUse.js'
import { Status, type StatusErrors } from './errors.js'
import { throwFirst } from './lifetime.js'

/** The C function that resets a device, and whose status it gives. */
export interface ResetCall {
  readonly api: string
  readonly errors: StatusErrors
  /** Whether it acts on the device of the current context. */
  readonly needsContext: boolean
  call(): number
}

/** What the device objects of `driver` and `runtime` share: the primary context, its reset and its release. */
export abstract class DeviceObject implements DeviceWithContext, DeviceLike {
  readonly ordinal: number
  /** The `CUdevice`. */
  readonly handle: CUdevice
  #primaryContext: Context | undefined
  #reset: Promise<void> | undefined
  /** Whether the primary context is being destroyed at this moment. */
  #isBeingDestroyed = false

  protected constructor(ordinal: number, handle: CUdevice) {
    this.ordinal = ordinal
    this.handle = handle
  }

  /**
   * The primary context, retained on first use (`cuDevicePrimaryCtxRetain`: this may take a moment).
   * @throws DeviceInUseError while {@link reset} destroys it.
   */
  get primaryContext(): Context {
    if (this.#isBeingDestroyed) throw new DeviceInUseError({ device: this.ordinal, reason: 'is being reset' })
    // Reset through a device object of the other package.
    if (this.#primaryContext?.disposed) this.#forget()
    this.#primaryContext ??= Context._retainPrimary(this)
    return this.#primaryContext
  }

  /** Blocks until all work of the device has ended. */
  abstract synchronizeSync(): void

  /**
   * Destroys everything in the primary context, of every user in the process, on a native thread, since it waits for the
   * work in flight. Waits for what this thread still awaits first. Objects that lived there throw `DisposedError`
   * afterwards; the next use of the device starts a fresh context. A reset that is under way is joined.
   *
   * Only this JavaScript thread learns of it. Nothing tells libraries such as NCCL, nor other threads of the process:
   * what they do with the device afterwards fails or ends the process. So call it when nobody else uses the device.
   * @throws DeviceInUseError, with nothing destroyed, in a worker, which cannot know what the other threads do, and while
   * the `ArrayBuffer` of page-locked memory that was moved away can still be read.
   */
  async reset(): Promise<void> {
    if (!isMainThread) {
      throw new DeviceInUseError({
        device: this.ordinal,
        reason: 'cannot be reset from a worker, where nobody knows what other threads do with it',
      })
    }
    this.#reset ??= this.#resetOnce().finally(() => {
      this.#reset = undefined
    })
    return this.#reset
  }

  /**
   * Lets go of the primary context. It is released as soon as nothing lives in it any more; using the device again
   * retains it anew. Devices need no dispose() for a clean exit.
   */
  dispose(): void {
    const context = this.#primaryContext
    if (context === undefined) return
    this.#forget()
    context._close()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  get [deviceProtocol](): { readonly version: 0; readonly ordinal: number } {
    return { version: 0, ordinal: this.ordinal }
  }

  /** What resets it. */
  protected abstract resetCall(): ResetCall

  /** Called when the primary context is not this device's any more. */
  protected contextForgotten(): void {}

  #forget(): void {
    this.#primaryContext = undefined
    this.contextForgotten()
  }

  async #resetOnce(): Promise<void> {
    const { handle } = this.primaryContext
    let contexts = Context._livingOn(this)
    for (let index = 0; index < contexts.length; ) {
      // What ended may have begun something new anywhere.
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
      const { api, errors, needsContext, call } = this.resetCall()
      const [status = Status.success] = await offThread(needsContext ? { context: handle } : {}, call)
      attempt(() => errors.check(status, api))
    } finally {
      this.#isBeingDestroyed = false
      for (const context of contexts) attempt(() => context._releaseAfterReset())
    }
    throwFirst(`Device ${this.ordinal}`, failures)
  }
}

/** A device of one of the two packages, or a TypeError that names the parameter. */
export function requireDevice<D extends DeviceWithContext>(device: D, name: string): D {
  if (device instanceof DeviceObject) return device
  throw new TypeError(`${name} must be a Device, not ${describeValue(device)}`)
}

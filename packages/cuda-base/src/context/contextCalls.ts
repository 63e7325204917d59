import type { CUcontext } from '@shoal/cuda-sys/driver/common'
import { callInContext } from '@shoal/ffi'
import { DisposedError, PublicObject } from '@shoal/types'
import type { CallName, CudaCalls, CudaLibrary } from '../calls/cudaLibrary.js'
import type { Device } from '../device/device.js'
import { check, isGone, Status } from '../errors.js'
import { processIsEnding } from '../lifetime.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'

/** The calls that are made in a context: it is current during each, and a status becomes an error. */
export abstract class ContextCalls extends PublicObject {
  /** The device it is of. */
  readonly device: Device
  /** @internal The library that is called for what lives here. */
  readonly _cuda: CudaLibrary
  /** @internal The handle without the check that the context is still there. */
  readonly _handle: CUcontext
  /** @internal The handle in two halves, for calls without a bigint. */
  readonly _halves: U64Halves
  /** @internal What gives memory back that is kept for later; whether it had any. */
  readonly _whenShort = new Set<() => boolean>()
  /** What errors call it once it was released or reset. */
  #gone: string | undefined

  constructor(device: Device, handle: CUcontext) {
    super()
    this.device = device
    this._handle = handle
    this._halves = halvesOf(handle)
    this._cuda = device._cuda
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

  /** @internal From now on every use is refused. */
  protected _markGone(what: string): void {
    this.#gone = what
  }

  /** @internal */
  _requireAlive(): void {
    if (this.#gone !== undefined) throw new DisposedError(this.#gone)
  }

  /** @internal The same for what is to be made in it. */
  _requireOpen(): void {
    this._requireAlive()
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
}

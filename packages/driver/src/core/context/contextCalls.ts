import type { CUcontext } from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import { DisposedError, PublicObject } from '@shoal/types'
import type { CallName, CudaCalls, CudaLibrary, NamedCall } from '../calls/cudaLibrary.js'
import type { Device } from '../device/device.js'
import { check, isGone, Status } from '../errors.js'
import { droppedCount, processIsEnding, reclaimDropped } from '../lifetime.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'
import { finishReleasesSync, type ReleaseCall } from './releases.js'

function reclaimAndFinish(): boolean {
  if (!reclaimDropped()) return false
  finishReleasesSync()
  return true
}

/**
 * Upper limit, in bytes, of what a whole device's memory adds to the JavaScript collector's memory pressure. A smaller
 * device counts with its size.
 */
const mostPressure = 2 ** 30

/** Calls C functions with this context current, and converts each status to an error. */
export abstract class ContextCalls extends PublicObject {
  /** The device of the context. */
  readonly device: Device
  /** @internal The library that this context's objects call. */
  readonly _cuda: CudaLibrary
  /** @internal The handle, without a check that the context still exists. */
  readonly _handle: CUcontext
  /** @internal The handle as two halves, for calls without a bigint. */
  readonly _halves: U64Halves
  /** @internal Functions that free cached memory. Each returns whether it freed any. */
  readonly _whenShort = new Set<() => boolean>()
  /** @internal While the context closes: the calls that a native thread makes before the context is released. */
  protected _closingCalls: ReleaseCall[] | undefined
  #weight: number | undefined
  /** How errors name the context after its release or reset. */
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

  /** @internal Bytes that `byteLength` bytes of the device's memory add to the collector's memory pressure. */
  _pressureOf(byteLength: number): number {
    try {
      this.#weight ??= Math.min(1, mostPressure / this.device.totalMemory)
    } catch {
      // This runs in a separate turn, where no caller could catch the error. The collector finds uncounted memory
      // anyway.
      return 0
    }
    return Math.ceil(byteLength * this.#weight)
  }

  /** @internal Marks the context as gone: every later use throws. */
  protected _markGone(what: string): void {
    this.#gone = what
  }

  /** @internal */
  _requireAlive(): void {
    if (this.#gone !== undefined) throw new DisposedError(this.#gone)
  }

  /** @internal Throws unless new objects can be created in the context. */
  _requireOpen(): void {
    this._requireAlive()
  }

  /** @internal Returns the error for a status of a shared function. */
  _error(status: number, call: NamedCall, detail?: string): Error {
    return this._cuda.error(status, this._cuda.nameOf(call), detail)
  }

  /** @internal Calls exactly one function of the library with this context current. Returns its status. */
  _status<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): number {
    callInContext(this.handle)
    return this.#make(call, args)
  }

  /** @internal Calls exactly one function of the library and checks its status. @throws StatusError */
  _call<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): void {
    callInContext(this.handle)
    const status = this.#make(call, args)
    if (status !== Status.success) throw this._error(status, call)
  }

  /**
   * @internal Calls an allocating function, and again after pending releases if memory is short. @throws StatusError
   */
  _callWithRoom<N extends CallName>(byteLength: number, call: N, ...args: Parameters<CudaCalls[N]>): void {
    const status = this._withRoom(() => this._status(call, ...args))
    if (status !== Status.success) throw this._allocationError(status, call, byteLength)
  }

  /** @internal Returns the error of a failed allocation, which states how much memory the device has. */
  _allocationError(status: number, call: CallName, byteLength: number): Error {
    return this._error(status, call, status === Status.outOfMemory ? this._shortage(byteLength) : undefined)
  }

  /** @internal Describes the free memory of the device. */
  _shortage(byteLength: number): string {
    const words = [`asked for: ${byteLength} bytes`]
    try {
      const { free, total } = this.device.memoryInfo()
      words.push(`free on device ${this.device.ordinal}: ${free} of ${total} bytes`)
    } catch {
      // A failed context reports no memory sizes. The error itself states the cause.
    }
    const count = droppedCount()
    if (count > 0)
      words.push(`dropped without dispose() so far: ${count} objects with memory; dispose of them, or use \`using\``)
    return words.join('; ')
  }

  /**
   * @internal Repeats a call after each step that frees resources the call may need. Returns the last status.
   * @param first the status of the first attempt; by default this function makes the first attempt
   */
  _withRoom(attempt: () => number, first = attempt()): number {
    let status = first
    if (status === Status.hostMemoryAlreadyRegistered || status === Status.alreadyMapped) {
      return finishReleasesSync() ? attempt() : status
    }
    for (const step of this.#stepsForRoom) if (status === Status.outOfMemory && step()) status = attempt()
    return status
  }

  /** @internal Releases everything that can be released now. Returns whether there was anything. */
  _makeRoom(): boolean {
    let hasMore = false
    for (const step of this.#stepsForRoom) hasMore = step() || hasMore
    return hasMore
  }

  /** Steps that free memory of the device, cheapest first. Each returns whether it freed any. */
  get #stepsForRoom(): readonly (() => boolean)[] {
    return [finishReleasesSync, () => this.#trimCaches(), reclaimAndFinish]
  }

  #trimCaches(): boolean {
    let hasMore = false
    for (const giveBack of this._whenShort) hasMore = giveBack() || hasMore
    return hasMore
  }

  /**
   * @internal Calls exactly one releasing function. Does nothing after the context is gone, because its resources went
   * with it.
   */
  _release<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): void {
    if (this.disposed || processIsEnding()) return
    if (this._closingCalls !== undefined) {
      this._closingCalls.push(this._releaseCall(call, ...args))
      return
    }
    callInContext(this._handle)
    const status = this.#make(call, args)
    if (status !== Status.success && !isGone(status)) throw this._error(status, call)
  }

  /** @internal Returns a call of one releasing function, for the release queue. */
  _releaseCall<N extends CallName>(call: N, ...args: Parameters<CudaCalls[N]>): ReleaseCall {
    return {
      make: () => (this._cuda.calls[call] as (...args: readonly unknown[]) => number)(...args),
      check: (status) => {
        if (status !== Status.success && !isGone(status)) throw this._error(status, call)
      },
    }
  }

  #make(call: CallName, args: readonly unknown[]): number {
    try {
      return (this._cuda.calls[call] as (...args: readonly unknown[]) => number)(...args)
    } catch (error) {
      // The library lacks the function, so the next call must not run in this context.
      callInContext(0n)
      throw error
    }
  }

  /** @internal Calls one function that only libcuda has, and checks its status. */
  _callDriver(api: string, call: () => number): void {
    const status = this.#driverStatus(call)
    if (status === Status.success) return
    const again = (): number => this.#driverStatus(call)
    check(status === Status.outOfMemory ? this._withRoom(again, status) : status, api)
  }

  #driverStatus(call: () => number): number {
    callInContext(this.handle)
    try {
      return call()
    } catch (error) {
      callInContext(0n)
      throw error
    }
  }
}

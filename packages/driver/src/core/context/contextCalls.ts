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
 * A device whose memory is in use as a whole counts as so many bytes for the collector of JavaScript, or as its size
 * where that is less.
 */
const mostPressure = 2 ** 30

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
  /** @internal While the context closes: what is released with it, on a native thread. */
  protected _closingCalls: ReleaseCall[] | undefined
  #weight: number | undefined
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

  /** @internal What the collector counts memory of the device as. */
  _pressureOf(byteLength: number): number {
    try {
      this.#weight ??= Math.min(1, mostPressure / this.device.totalMemory)
    } catch {
      // It is asked in a turn of its own, where nobody could catch the error. Memory that is not counted is found all
      // the same.
      return 0
    }
    return Math.ceil(byteLength * this.#weight)
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
  _error(status: number, call: NamedCall, detail?: string): Error {
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

  /**
   * @internal The same for a function that allocates: again when what was disposed of is released. @throws StatusError
   */
  _callWithRoom<N extends CallName>(byteLength: number, call: N, ...args: Parameters<CudaCalls[N]>): void {
    const status = this._withRoom(() => this._status(call, ...args))
    if (status !== Status.success) throw this._allocationError(status, call, byteLength)
  }

  /** @internal The error of a call that was to allocate: tells how short memory is. */
  _allocationError(status: number, call: CallName, byteLength: number): Error {
    return this._error(status, call, status === Status.outOfMemory ? this._shortage(byteLength) : undefined)
  }

  /** @internal What there is of the memory of the device, in words. */
  _shortage(byteLength: number): string {
    const words = [`asked for: ${byteLength} bytes`]
    try {
      const { free, total } = this.device.memoryInfo()
      words.push(`free on device ${this.device.ordinal}: ${free} of ${total} bytes`)
    } catch {
      // A context that has failed tells nothing more; the error says why.
    }
    const count = droppedCount()
    if (count > 0)
      words.push(`dropped without dispose() so far: ${count} objects with memory; dispose of them, or use \`using\``)
    return words.join('; ')
  }

  /**
   * @internal Makes a call again after each step that releases what may have been in its way. Gives the last status.
   * @param first the status of the first attempt. Default: it is made.
   */
  _withRoom(attempt: () => number, first = attempt()): number {
    let status = first
    if (status === Status.hostMemoryAlreadyRegistered || status === Status.alreadyMapped) {
      return finishReleasesSync() ? attempt() : status
    }
    for (const step of this.#stepsForRoom) if (status === Status.outOfMemory && step()) status = attempt()
    return status
  }

  /** @internal Releases what can be released at once. Gives whether there was anything. */
  _makeRoom(): boolean {
    let hasMore = false
    for (const step of this.#stepsForRoom) hasMore = step() || hasMore
    return hasMore
  }

  /** What makes room on the device, the cheapest first. Each tells whether there was anything. */
  get #stepsForRoom(): readonly (() => boolean)[] {
    return [finishReleasesSync, () => this.#trimCaches(), reclaimAndFinish]
  }

  #trimCaches(): boolean {
    let hasMore = false
    for (const giveBack of this._whenShort) hasMore = giveBack() || hasMore
    return hasMore
  }

  /**
   * @internal Calls one releasing function, exactly one; does nothing when the context is gone, and what it held with
   * it.
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

  /** @internal One releasing function, for the queue of releases. */
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
      // A function the library does not have: the next call must not be made in this context.
      callInContext(0n)
      throw error
    }
  }

  /** @internal The same for one function that libcuda alone has. */
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

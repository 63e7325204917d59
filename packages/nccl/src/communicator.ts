import { offThread } from '@shoal/ffi'
import {
  type ncclComm_t,
  ncclCommAbort,
  ncclCommDestroy,
  ncclCommFinalize,
  ncclCommGetAsyncError,
} from '@shoal/nccl-sys'
import type { DeviceLike, StatusError } from '@shoal/types'
import { DisposedError, toDeviceOrdinal } from '@shoal/types'
import { addContext, removeContext } from './contexts.js'
import { checkNccl, lastErrorOf, ncclError } from './errors.js'
import { initAllNative, initRankNative, type NativeCommunicator } from './init.js'
import { forgetLeak, watchForLeak } from './leaks.js'
import type { LiveCommunicator } from './live.js'
import { named } from './operands.js'
import { CommunicatorOperations } from './operations.js'
import { releasePrimaryContexts } from './primaryContexts.js'
import { UniqueId } from './uniqueId.js'

export interface InitRankOptions {
  /** Device this rank works on: an object of `@shoal/driver`, anything with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** This process's place, from 0 to `worldSize` - 1. Each rank exactly once. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** The id that one rank made and all of them got. */
  readonly id: UniqueId
  /**
   * Rejects the promise with AbortedError when it fires. NCCL itself goes on waiting for the other ranks on a thread
   * of its own, which does not keep the process alive; a communicator that comes of it is aborted at once.
   */
  readonly signal?: AbortSignal
}

type State = 'open' | 'finalized' | 'destroyed' | 'aborted'

const inProgress = 7

/**
 * One rank's end of a group of devices that work together (`ncclComm_t`).
 *
 * Operations are queued on a stream and return at once; awaiting the stream tells when they are done. One thread that
 * drives several communicators puts the calls of all of them into `group()`.
 *
 * It lives until `destroy()` or `abort()`; `await using` calls the former. The garbage collector only reports one that
 * was forgotten, since destroying it waits for other ranks.
 */
export class Communicator extends CommunicatorOperations {
  /** This communicator's place among the ranks, from 0. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of its device. */
  readonly device: number
  readonly #native: NativeCommunicator
  readonly #live: LiveCommunicator
  #state: State = 'open'
  #finalizing: Promise<void> | undefined
  #ending: Promise<void> | undefined

  private constructor(native: NativeCommunicator, rank: number, worldSize: number) {
    super()
    this.rank = rank
    this.worldSize = worldSize
    this.device = native.context.ordinal
    this.#native = native
    this.#live = { handle: native.handle, rank, worldSize, device: this.device, context: native.context.handle }
    addContext(native.context.handle)
    watchForLeak(this, this.#name())
  }

  /**
   * Makes one communicator for each device, all driven by this process; the rank is the place in the list
   * (`ncclCommInitAll`, off the JavaScript thread).
   *
   * @throws RangeError for a device that is not there or is named twice.
   * @throws LibraryNotFoundError when there is no CUDA driver or no NCCL, StatusError when one of them refuses.
   */
  static async initAll(devices: Iterable<DeviceLike | number>): Promise<Communicator[]> {
    const api = 'Communicator.initAll'
    if (typeof (devices as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] !== 'function') {
      throw new TypeError(`${api}: devices must be a list of devices or ordinals`)
    }
    const ordinals = Array.from(devices, (device, index) =>
      named(api, `devices[${index}]`, () => toDeviceOrdinal(device)),
    )
    if (ordinals.length === 0) throw new RangeError(`${api}: the list of devices is empty`)
    const twice = ordinals.find((ordinal, index) => ordinals.indexOf(ordinal) !== index)
    if (twice !== undefined)
      throw new RangeError(`${api}: device ${twice} is named twice; NCCL allows one rank a device`)
    const natives = await initAllNative(ordinals, api)
    return natives.map((native, rank) => new Communicator(native, rank, ordinals.length))
  }

  /**
   * Joins a communicator whose other ranks live in other processes, or in other calls of this function
   * (`ncclCommInitRank`, off the JavaScript thread). Settles when all `worldSize` ranks have come.
   *
   * @throws TypeError, RangeError for wrong options, before anything native runs.
   * @throws AbortedError when `signal` fires, StatusError when the driver or NCCL refuses.
   */
  static async initRank(options: InitRankOptions): Promise<Communicator> {
    const api = 'Communicator.initRank'
    if (typeof options !== 'object' || options === null) throw new TypeError(`${api}: options are needed`)
    const { rank, worldSize, id, signal } = options
    const ordinal = named(api, 'device', () => toDeviceOrdinal(options.device))
    requireWhole(worldSize, 'worldSize', 1, 0x7fff_ffff, api)
    requireWhole(rank, 'rank', 0, worldSize - 1, api)
    if (!UniqueId._is(id)) throw new TypeError(`${api}: id must be a UniqueId (see UniqueId.fromBytes)`)
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new TypeError(`${api}: signal must be an AbortSignal`)
    }
    return new Communicator(await initRankNative(ordinal, rank, worldSize, id, signal, api), rank, worldSize)
  }

  /** The `ncclComm_t`, for raw functions of `@shoal/nccl-sys`. Throws DisposedError once it is gone. */
  get handle(): ncclComm_t {
    this.#requireAlive('handle')
    return this.#native.handle
  }

  /** Whether `destroy()` or `abort()` was called. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /**
   * What went wrong behind earlier calls, such as a lost connection; undefined when nothing did
   * (`ncclCommGetAsyncError`). After an error only `abort()` helps.
   */
  asyncError(): StatusError | undefined {
    this.#requireAlive('asyncError')
    const { handle } = this.#native
    const out = new Int32Array(1)
    checkNccl(ncclCommGetAsyncError(handle, out), 'ncclCommGetAsyncError', handle)
    const status = out[0] ?? 0
    if (status === 0 || status === inProgress) return undefined
    return ncclError(status, 'ncclCommGetAsyncError', handle)
  }

  /** The last thing NCCL had to say about an error in this process, empty when there was none (`ncclGetLastError`). */
  lastError(): string {
    this.#requireAlive('lastError')
    return lastErrorOf(this.#native.handle) ?? ''
  }

  /**
   * Ends all work of this communicator (`ncclCommFinalize`, NCCL 2.14, off the JavaScript thread); `destroy()` is still
   * to be called. No operation may follow. Idempotent.
   */
  finalize(): Promise<void> {
    this.#requireAlive('finalize')
    this.#state = 'finalized'
    this.#finalizing ??= this.#callOffThread(() => ncclCommFinalize(this.#native.handle), 'ncclCommFinalize')
    return this.#finalizing
  }

  /**
   * Waits for the work of this communicator and frees it (`ncclCommDestroy`, off the JavaScript thread). Idempotent,
   * and nothing to do after `abort()`. All ranks of a communicator destroy it.
   *
   * The wait has no limit and cannot be ended: NCCL frees the communicator in it. After an operation that other ranks
   * did not join, and after a reset of the device, `abort()` is the way out.
   */
  destroy(): Promise<void> {
    this.#ending ??= this.#end('destroyed', ncclCommDestroy, 'ncclCommDestroy')
    return this.#ending
  }

  /**
   * Ends operations that are still running, without waiting for other ranks, and frees the communicator
   * (`ncclCommAbort`, off the JavaScript thread): the way out when a rank is lost. Idempotent; no `destroy()` follows.
   * After `destroy()` it only waits for that to end, and it waits for a `finalize()` that is under way.
   */
  abort(): Promise<void> {
    this.#ending ??= this.#end('aborted', ncclCommAbort, 'ncclCommAbort')
    return this.#ending
  }

  /** The same as `destroy()`. */
  dispose(): Promise<void> {
    return this.destroy()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy()
  }

  get [Symbol.toStringTag](): string {
    return 'Communicator'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `${this.#name()}${this.#state === 'open' ? '' : ` (${this.#state})`}`
  }

  #name(): string {
    return `Communicator of rank ${this.rank} of ${this.worldSize} on device ${this.device}`
  }

  #requireAlive(operation: string): void {
    if (this.#ending !== undefined) throw new DisposedError({ object: this.#name(), operation })
  }

  /** @internal */
  protected override _use(operation: string): LiveCommunicator {
    if (this.#state !== 'open') throw new DisposedError({ object: this.#name(), operation })
    return this.#live
  }

  async #end(state: State, call: (comm: ncclComm_t) => unknown, api: string): Promise<void> {
    this.#state = state
    forgetLeak(this)
    // A failed finalize() has told its own caller.
    await this.#finalizing?.catch(() => undefined)
    try {
      await this.#callOffThread(() => call(this.#native.handle), api)
    } finally {
      removeContext(this.#native.context.handle)
      await releasePrimaryContexts([this.#native.context])
    }
  }

  async #callOffThread(call: () => unknown, api: string): Promise<void> {
    // A group that is open on this thread may hold operations of this communicator; it ends before the next microtask.
    await undefined
    const [status = 0] = await offThread({ context: this.#native.context.handle }, call)
    checkNccl(status, api)
  }
}

function requireWhole(value: unknown, name: string, least: number, most: number, api: string): void {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${api}: ${name} must be a number`)
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw new RangeError(`${api}: ${name} must be a whole number from ${least} to ${most}, got ${value}`)
}

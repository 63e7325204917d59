import type { BackgroundWork } from '@shoal/ffi'
import { type ncclComm_t, ncclCommGetUniqueId, ncclResult_t } from '@shoal/nccl-sys'
import {
  AbortedError,
  type DeviceLike,
  inspectKey,
  inspectLine,
  requireMade,
  requireOptions,
  type StatusError,
  type StreamArgument,
  wrongType,
} from '@shoal/types'
import { streamHandleAt } from '../arguments/operands.js'
import { checkNccl, lastErrorOf, ncclError } from '../errors.js'
import { groupState, requireNoGroup } from '../group/groupState.js'
import { localRanksOfChild } from '../group/localRanksOfChild.js'
import { asyncStatus } from '../lifetime/asyncStatus.js'
import { type LiveCommunicator, requireIdle, settled, whenReady } from '../lifetime/live.js'
import { createLocalRanks, type LocalRanks, localRanksOf, makeLocalRank, mergeAlias } from '../lifetime/localRanks.js'
import { whenStreamDone } from '../lifetime/streamWait.js'
import { type CommunicatorWaitOptions, readWait, requireWait } from '../lifetime/waitOptions.js'
import { CommunicatorOperations } from './communicatorOperations.js'
import { type CommunicatorConfig, nativeConfig } from './config.js'
import { growing, type Origin, readDeriveOptions, shrinking, splitting } from './derivations.js'
import { type Deriving, deriveNative } from './derive.js'
import {
  abortUnclaimed as abortNative,
  initAllNative,
  initEachNative,
  joinNative,
  type NativeCommunicator,
} from './init.js'
import { CommunicatorLifecycle, type Place } from './lifecycle.js'
import {
  type DeriveOptions,
  type GrowOptions,
  type InitOptions,
  type InitRankOptions,
  initKeys,
  type JoinGrownOptions,
  readJoining,
  requireDevices,
  type ShrinkOptions,
  type SplitOptions,
} from './options.js'
import {
  type CommunicatorMemoryStatistics,
  type CommunicatorProperties,
  readMemoryStatistics,
  readProperties,
} from './properties.js'
import { resume, revoke, suspend } from './stateChanges.js'
import { UniqueId } from './uniqueId.js'

/**
 * One rank's end of a group of devices that work together (`ncclComm_t`).
 *
 * Operations are queued on a stream and return at once; `synchronize(stream)` tells when they are done, and that no
 * rank was lost meanwhile. One thread that drives several communicators puts the calls of all of them into `group()`.
 *
 * When a signal fires, a time limit passes or NCCL reports a lost rank, the communicator is aborted and everything that
 * waits for it rejects with CommunicatorAbortedError. NCCL is asked for lost ranks ten times a second while something
 * waits.
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
  readonly deviceOrdinal: number
  /** False: NCCL works in the background (`config.blocking`), and `ready()` tells when it is done. */
  readonly isBlocking: boolean
  readonly #lifecycle: CommunicatorLifecycle
  readonly #config: CommunicatorConfig
  readonly #signal: AbortSignal | undefined

  private constructor(
    native: NativeCommunicator,
    identity: Place,
    config: CommunicatorConfig,
    signal: AbortSignal | undefined,
  ) {
    requireMade(identity?.rank, 'Communicator', 'Communicator.initRank or Communicator.initAll', 'number')
    super()
    this.rank = identity.rank
    this.worldSize = identity.worldSize
    this.deviceOrdinal = native.context.ordinal
    this.isBlocking = native.isBlocking
    this.#config = config
    this.#signal = signal
    this.#lifecycle = new CommunicatorLifecycle(this, native, identity, signal)
  }

  /**
   * Makes one communicator for each device, all driven by this process; the rank is the place in the list
   * (`ncclCommInitAll`, with a config `ncclCommInitRankConfig` for each; off the JavaScript thread).
   *
   * @example
   * ```ts
   * import { Device, DeviceBuffer } from '@shoal/driver'
   * import { Communicator, group } from '@shoal/nccl'
   *
   * const devices = Device.all()
   * const communicators = await Communicator.initAll(devices)
   * const buffers = devices.map((device) => DeviceBuffer.from(device, new Float32Array(8).fill(1)))
   * group(() => {
   *   for (const [rank, communicator] of communicators.entries()) {
   *     communicator.allReduce(buffers[rank]!, buffers[rank]!, { stream: null })
   *   }
   * })
   * await Promise.all(communicators.map((communicator) => communicator.synchronize(null)))
   * await Promise.all(communicators.map((communicator) => communicator.destroy()))
   * ```
   *
   * @throws RangeError for a device that is not there or is named twice.
   * @throws AbortedError when the signal fires, TimeoutError when the time is up, LibraryNotFoundError when there is no
   * CUDA driver or no NCCL, VersionTooOldError for a config that NCCL does not know, StatusError when one of them
   * refuses.
   */
  static async initAll(devices: Iterable<DeviceLike | number>, options: InitOptions = {}): Promise<Communicator[]> {
    const api = 'Communicator.initAll'
    const ordinals = requireDevices(devices, api)
    requireOptions(options, api, initKeys)
    const waitOptions = readWait(options, api)
    const { config } = options
    nativeConfig(config, api)?.dispose()
    const natives =
      config === undefined
        ? await initAllNative(ordinals, waitOptions, api)
        : await initEachNative(ordinals, config, waitOptions, api)
    const made = await Communicator.#adopt(natives, options, api, (_, rank) => ({ rank, worldSize: ordinals.length }))
    const localRanks = createLocalRanks()
    localRanks.count = made.length
    for (const one of made) one.#lifecycle.joinLocalRanks(localRanks)
    return made
  }

  /**
   * Joins a communicator whose other ranks live in other processes, or in other calls of this function
   * (`ncclCommInitRank`, `ncclCommInitRankConfig`, `ncclCommInitRankScalable`; off the JavaScript thread). Settles when
   * all `worldSize` ranks have come.
   *
   * When the wait is given up, NCCL itself goes on waiting for the other ranks on a thread of its own, which does not
   * keep the process alive, and a communicator that comes of it is aborted at once. With `config: { blocking: false }`
   * the init itself is aborted, and nothing is left of it.
   *
   * @example
   * ```ts
   * // Rank 0 has made the id and sent it to the others as text.
   * const id = UniqueId.fromBase64(text)
   * await using communicator = await Communicator.initRank({ device: 0, rank, worldSize, id, timeout: 60_000 })
   * ```
   *
   * @throws TypeError, RangeError for wrong options, before anything native runs.
   * @throws AbortedError when `signal` fires, TimeoutError when the time is up, VersionTooOldError for a config that
   * NCCL does not know, StatusError when the driver or NCCL refuses or another rank is lost.
   */
  static async initRank(options: InitRankOptions): Promise<Communicator> {
    return Communicator.#join(options, 'Communicator.initRank', false)
  }

  /**
   * Joins a communicator that grows, whose old ranks call `grow()` (`ncclCommGrow`, NCCL 2.29, off the JavaScript
   * thread).
   *
   * @throws as `initRank`.
   */
  static async joinGrown(options: JoinGrownOptions): Promise<Communicator> {
    return Communicator.#join(options, 'Communicator.joinGrown', true)
  }

  /** The `ncclComm_t`, for raw functions of `@shoal/nccl-sys`. Throws DisposedError once it is gone. */
  get handle(): ncclComm_t {
    this.#lifecycle.requireAlive('handle')
    return this.#lifecycle.native.handle
  }

  /** Whether it was destroyed or aborted, also by a signal, a time limit or a lost rank. */
  get disposed(): boolean {
    return this.#lifecycle.ending !== undefined
  }

  /**
   * Resolves when the work queued on `stream` until now has ended and no rank was lost: the way to wait for operations.
   * Waiting for the stream itself is not enough, since NCCL lets a stream go on when its communicator is aborted.
   *
   * A signal or a time limit aborts the communicator. To give up a wait without that, use the wait of the stream.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, for whatever reason.
   * @throws StatusError of the driver when the context has failed; TypeError, RangeError for wrong arguments; BusyError
   * inside a group, whose operations start when it ends.
   */
  async synchronize(stream: StreamArgument, options?: CommunicatorWaitOptions): Promise<void> {
    const api = 'Communicator.synchronize'
    this.#lifecycle.requireUsable('synchronize')
    const waitOptions = requireWait(options, api)
    const live = this.#lifecycle.live
    // A wait for the default stream instead of the one that was meant would resolve too early.
    if (stream === undefined) throw wrongType(api, 'stream', 'a stream (null is the default stream)', stream)
    streamHandleAt(stream, live, api)
    requireNoGroup(api)
    await this.#lifecycle.watchdog.guard('synchronize', waitOptions, async (background) => {
      await whenReady(live, background)
      if (this.#lifecycle.watchdog.failure !== undefined) return
      // Asked again: the stream may have been disposed of while this waited for its turn.
      const { handle } = streamHandleAt(stream, live, api)
      await whenStreamDone(live.context, handle, background, this.#lifecycle.watchdog.failing)
    })
  }

  /**
   * Resolves when NCCL has done what it was asked: to be awaited after each operation or group of a communicator that
   * is not blocking, before its streams are used or it is called again. Of a blocking one it resolves at once, or when
   * what runs on another thread is over.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, also because NCCL reports an error.
   */
  async ready(options?: CommunicatorWaitOptions): Promise<void> {
    this.#lifecycle.requireAlive('ready')
    const waitOptions = requireWait(options, 'Communicator.ready')
    const live = this.#lifecycle.live
    await this.#lifecycle.watchdog.guard('ready', waitOptions, (background) => whenReady(live, background))
  }

  /**
   * What went wrong behind earlier calls, such as a lost connection; undefined when nothing did
   * (`ncclCommGetAsyncError`). After an error only `abort()` helps.
   */
  asyncError(): StatusError | undefined {
    this.#lifecycle.requireAlive('asyncError')
    const { handle } = this.#lifecycle.native
    const status = asyncStatus(handle)
    if (status === ncclResult_t.ncclSuccess || status === ncclResult_t.ncclInProgress) return undefined
    return ncclError(status, 'ncclCommGetAsyncError', handle)
  }

  /** The last thing NCCL had to say about an error in this process, empty when there was none (`ncclGetLastError`). */
  lastError(): string {
    this.#lifecycle.requireAlive('lastError')
    return lastErrorOf(this.#lifecycle.native.handle) ?? ''
  }

  /** What this communicator is and can do (`ncclCommQueryProperties`, NCCL 2.29). */
  properties(): CommunicatorProperties {
    this.#lifecycle.requireAlive('properties')
    requireIdle(this.#lifecycle.live, 'Communicator.properties')
    return readProperties(this.#lifecycle.native.handle)
  }

  /** GPU memory of this communicator (`ncclCommMemStats`, NCCL 2.29.7). */
  memoryStatistics(): CommunicatorMemoryStatistics {
    this.#lifecycle.requireAlive('memoryStatistics')
    requireIdle(this.#lifecycle.live, 'Communicator.memoryStatistics')
    return readMemoryStatistics(this.#lifecycle.native.handle)
  }

  /**
   * An id by which new ranks join this communicator in one `grow()` (`ncclCommGetUniqueId`, NCCL 2.29). One rank makes
   * it, gives it to the new ranks and to its own `grow()`; there is no second one before that is done.
   */
  createUniqueId(): UniqueId {
    this.#lifecycle.requireUsable('createUniqueId')
    requireIdle(this.#lifecycle.live, 'Communicator.createUniqueId')
    const bytes = new Uint8Array(UniqueId.byteLength)
    const { handle } = this.#lifecycle.native
    checkNccl(ncclCommGetUniqueId(handle, bytes), 'ncclCommGetUniqueId', handle)
    return UniqueId.fromBytes(bytes)
  }

  /**
   * Makes communicators out of this one, one for each color (`ncclCommSplit`, NCCL 2.18, off the JavaScript thread).
   * All ranks call it. Undefined for a rank with the color null. This communicator stays as it is; where the new one
   * shares its resources (`config.splitShare`), it ends before this one.
   *
   * @throws TypeError, RangeError for wrong options; CommunicatorAbortedError when this communicator is aborted while
   * it waits for the others; StatusError when NCCL refuses.
   */
  async split(options: SplitOptions): Promise<Communicator | undefined> {
    this.#lifecycle.requireManageable('split')
    return this.#derive('split', options, splitting(this.#origin, options))
  }

  /**
   * Makes a communicator of the ranks that are not in `exclude` (`ncclCommShrink`, NCCL 2.27, off the JavaScript
   * thread). They all call it with the same list and keep their order.
   *
   * @throws RangeError when this rank is excluded, nobody is, or a rank is not there; else as `split`.
   */
  async shrink(options: ShrinkOptions): Promise<Communicator> {
    this.#lifecycle.requireManageable('shrink')
    const deriving = shrinking(this.#origin, options)
    readDeriveOptions('shrink', options)
    const rejectWaits = options.abort === true ? this.#lifecycle.revoked('shrink') : undefined
    try {
      return (await this.#derive('shrink', options, deriving)) as Communicator
    } finally {
      rejectWaits?.()
    }
  }

  /**
   * Makes a communicator of these ranks and new ones, which call `Communicator.joinGrown` (`ncclCommGrow`, NCCL 2.29,
   * off the JavaScript thread). All ranks call it; one of them has made the id with `createUniqueId()` and gives it
   * here. This communicator stays; destroy it when it is no longer needed.
   *
   * @throws as `split`.
   */
  async grow(options: GrowOptions): Promise<Communicator> {
    this.#lifecycle.requireUsable('grow')
    return (await this.#derive('grow', options, growing(this.#origin, options))) as Communicator
  }

  /**
   * Ends everything that is under way on this rank, without freeing the communicator (`ncclCommRevoke`, NCCL 2.28.7,
   * off the JavaScript thread). Waits for such work reject with CommunicatorAbortedError. Afterwards `split`, `shrink`,
   * `destroy` and `abort` are left.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, StatusError when NCCL refuses.
   */
  async revoke(options?: CommunicatorWaitOptions): Promise<void> {
    await revoke(this.#lifecycle, options)
  }

  /**
   * Gives back the GPU memory of the communicator that it can do without while it is not used (`ncclCommSuspend`, NCCL
   * 2.29.7, off the JavaScript thread): `memoryStatistics()` tells how much. All ranks call it, with nothing under way.
   * `resume()` makes it usable again.
   */
  async suspend(options?: CommunicatorWaitOptions): Promise<void> {
    await suspend(this.#lifecycle, options)
  }

  /** Makes a suspended communicator usable again (`ncclCommResume`, NCCL 2.29.7, off the JavaScript thread). */
  async resume(options?: CommunicatorWaitOptions): Promise<void> {
    await resume(this.#lifecycle, options)
  }

  /**
   * Ends all work of this communicator (`ncclCommFinalize`, NCCL 2.14, off the JavaScript thread); `destroy()` is still
   * to be called. No operation may follow. Idempotent.
   *
   * @throws (rejects) BusyError while a graph uses the communicator; CommunicatorAbortedError when the communicator is
   * aborted meanwhile, StatusError when NCCL refuses.
   */
  async finalize(options?: CommunicatorWaitOptions): Promise<void> {
    await this.#lifecycle.finalize(requireWait(options, 'Communicator.finalize'))
  }

  /**
   * Waits for the work of this communicator and frees it (`ncclCommDestroy`, off the JavaScript thread), after what was
   * made with it: windows, registrations, communicators that share its resources. Idempotent, and nothing to do after
   * an abort. All ranks of a communicator destroy it.
   *
   * While it waits for the work of the device, `abort()`, a signal, a time limit and a lost rank end the wait.
   *
   * @throws (rejects) BusyError while a graph uses the communicator, which then stays as it is;
   * CommunicatorAbortedError when the communicator is aborted meanwhile; StatusError when NCCL refuses.
   */
  destroy(options?: CommunicatorWaitOptions): Promise<void> {
    try {
      return this.#lifecycle.destroy(requireWait(options, 'Communicator.destroy'))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Ends operations that are still running, without waiting for other ranks, and frees the communicator
   * (`ncclCommAbort`, off the JavaScript thread): the way out when a rank is lost. Everything that waits for this
   * communicator rejects with CommunicatorAbortedError, also a `destroy()` that still waits for work. Idempotent; no
   * `destroy()` follows. Once NCCL is freeing the communicator it only waits for that.
   *
   * A call of NCCL that waits for other ranks on another thread cannot be ended (`split` of a blocking communicator).
   * After two seconds the communicator is then left to it, with a warning, and freed when it returns. A communicator
   * that captured graphs use is freed after them; their launches throw from now on.
   */
  abort(): Promise<void> {
    return this.#lifecycle.abort()
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

  override [inspectKey](): string {
    const { rank, worldSize, deviceOrdinal } = this
    const { state } = this.#lifecycle
    return inspectLine('Communicator', { rank, worldSize, deviceOrdinal, state: state === 'open' ? undefined : state })
  }

  /** @internal */
  protected override _use(operation: string): LiveCommunicator {
    // Also of an operation that gets no further than this, groupEnd() has to know.
    if (this.#lifecycle.state !== 'open') {
      groupState.unmade += 1
      this.#lifecycle.requireUsable(operation)
    }
    return this.#lifecycle.live
  }

  get #origin(): Origin {
    const { rank, worldSize } = this
    const { native, state } = this.#lifecycle
    return { handle: native.handle, rank, worldSize, config: this.#config, isRevoked: state === 'revoked' }
  }

  /** Makes a communicator out of this one. */
  async #derive(operation: string, options: DeriveOptions, deriving: Deriving): Promise<Communicator | undefined> {
    const waitOptions = readDeriveOptions(operation, options)
    const work = async (background: BackgroundWork): Promise<Communicator | undefined> => {
      const { live } = this.#lifecycle
      if (!this.isBlocking) await settled(live, deriving.api)
      const { callKey, childKey, id } = deriving
      const localRanks = localRanksOfChild(live, callKey, childKey ?? 'none')
      if (localRanks !== undefined && id !== undefined) mergeAlias(localRanks, id)
      return Communicator.#amongLocalRanks(childKey === undefined ? undefined : localRanks, async () => {
        const made = await deriveNative(live, deriving, options.config, background)
        if (made === undefined) return undefined
        const child = new Communicator(made.native, made, options.config ?? this.#config, this.#signal)
        if (deriving.shares) this.#lifecycle.share(child.#lifecycle)
        return child
      })
    }
    return this.#lifecycle.guarded(operation, waitOptions, work, abortUnclaimed)
  }

  static async #join(options: InitRankOptions, api: string, grows: boolean): Promise<Communicator> {
    const joining = readJoining(options, api, grows)
    const { rank, worldSize, ids } = joining
    return Communicator.#amongLocalRanks(localRanksOf(String(ids[0])), async () => {
      const natives = [await joinNative(joining, api)]
      const [made] = await Communicator.#adopt(natives, options, api, () => ({ rank, worldSize }))
      return made as Communicator
    })
  }

  static #amongLocalRanks<C extends Communicator | undefined>(
    localRanks: LocalRanks | undefined,
    make: () => Promise<C>,
  ): Promise<C> {
    return makeLocalRank(localRanks, make, (made, all) => made.#lifecycle.joinLocalRanks(all))
  }

  /** Communicators for what NCCL has made, unless the signal has fired since. */
  static async #adopt(
    natives: readonly NativeCommunicator[],
    { config = {}, signal }: InitOptions,
    api: string,
    identity: (native: NativeCommunicator, index: number) => Place,
  ): Promise<Communicator[]> {
    if (signal?.aborted === true) {
      await Promise.all(natives.map(abortNative))
      throw new AbortedError({ operation: api, cause: signal.reason })
    }
    return natives.map((native, index) => new Communicator(native, identity(native, index), config, signal))
  }
}

/** The caller has been told that the wait is over: nobody else will end what has come of it. */
function abortUnclaimed(communicator: Communicator | undefined): void {
  communicator?.abort().catch((error: unknown) => {
    process.emitWarning(`${communicator[inspectKey]()} could not be aborted: ${String(error)}`, 'ShoalWarning')
  })
}

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
 * One rank of a group of devices that work together (`ncclComm_t`).
 *
 * Operations are queued on a stream and return immediately. `synchronize(stream)` resolves when they are complete and
 * no rank was lost. A thread with several communicators puts the calls of all of them into `group()`.
 *
 * When a signal fires, a time limit passes or NCCL reports a lost rank, the communicator is aborted, and all its waits
 * reject with CommunicatorAbortedError. While a wait is pending, NCCL is polled for lost ranks ten times per second.
 *
 * Call `destroy()` or `abort()` at the end; `await using` calls `destroy()`. The garbage collector only reports a
 * forgotten communicator, because `destroy()` waits for other ranks.
 */
export class Communicator extends CommunicatorOperations {
  /** Rank of this communicator, from 0. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of the device. */
  readonly deviceOrdinal: number
  /** False if NCCL works in the background (`config.blocking`). `ready()` then waits for this work. */
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
   * Creates one communicator per device, all in this process. The order of the devices is the order of the ranks.
   *
   * Uses `ncclCommInitAll`, or with a config `ncclCommInitRankConfig` for each, off the JavaScript thread.
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
   * @throws RangeError for a device that does not exist or is listed twice.
   * @throws AbortedError when the signal fires, TimeoutError when the time is up, LibraryNotFoundError when the CUDA
   * driver or NCCL is missing, VersionTooOldError for a config unknown to NCCL, StatusError when the driver or NCCL
   * returns an error.
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
   * Joins a communicator whose other ranks are in other processes or other calls of this function. Settles when all
   * `worldSize` ranks have joined (`ncclCommInitRank`, `ncclCommInitRankConfig`, `ncclCommInitRankScalable`; off the
   * JavaScript thread).
   *
   * If the wait ends early, NCCL continues to wait for the other ranks on its own thread, which does not keep the
   * process alive. A communicator from this late init is aborted immediately. With `config: { blocking: false }` the
   * init itself is aborted, and no thread remains.
   *
   * @example
   * ```ts
   * // Rank 0 has created the id and sent it to the others as text. const id = UniqueId.fromBase64(text) await using
   * communicator = await Communicator.initRank({ device: 0, rank, worldSize, id, timeout: 60_000 })
   * ```
   *
   * @throws TypeError, RangeError for wrong options, before any native call.
   * @throws AbortedError when `signal` fires, TimeoutError when the time is up, VersionTooOldError for a config unknown
   * to NCCL, StatusError when the driver or NCCL returns an error or another rank is lost.
   */
  static async initRank(options: InitRankOptions): Promise<Communicator> {
    return Communicator.#join(options, 'Communicator.initRank', false)
  }

  /**
   * Joins a growing communicator, whose old ranks call `grow()` (`ncclCommGrow`, NCCL 2.29, off the JavaScript thread).
   *
   * @throws as `initRank`.
   */
  static async joinGrown(options: JoinGrownOptions): Promise<Communicator> {
    return Communicator.#join(options, 'Communicator.joinGrown', true)
  }

  /** The `ncclComm_t`, for raw functions of `@shoal/nccl-sys`. @throws DisposedError after the communicator's end. */
  get handle(): ncclComm_t {
    this.#lifecycle.requireAlive('handle')
    return this.#lifecycle.native.handle
  }

  /** Whether the communicator was destroyed or aborted, also by a signal, a time limit or a lost rank. */
  get disposed(): boolean {
    return this.#lifecycle.ending !== undefined
  }

  /**
   * Resolves when the work queued on `stream` so far completes and no rank was lost.
   *
   * Always wait for operations with this method. A wait for the stream is not enough, because NCCL lets the stream
   * continue when the communicator is aborted. A signal or a time limit aborts the communicator. To end a wait without
   * aborting, use the stream's own wait.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, for any reason.
   * @throws StatusError of the driver when the context has failed; TypeError, RangeError for wrong arguments; BusyError
   * inside a group, because its operations start when the group ends.
   */
  async synchronize(stream: StreamArgument, options?: CommunicatorWaitOptions): Promise<void> {
    const api = 'Communicator.synchronize'
    this.#lifecycle.requireUsable('synchronize')
    const waitOptions = requireWait(options, api)
    const live = this.#lifecycle.live
    // Waiting for the default stream instead of the intended one would resolve too early.
    if (stream === undefined) throw wrongType(api, 'stream', 'a stream (null is the default stream)', stream)
    streamHandleAt(stream, live, api)
    requireNoGroup(api)
    await this.#lifecycle.watchdog.guard('synchronize', waitOptions, async (background) => {
      await whenReady(live, background)
      if (this.#lifecycle.watchdog.failure !== undefined) return
      // Check again, because the stream may have been disposed of while this call waited for its turn.
      const { handle } = streamHandleAt(stream, live, api)
      await whenStreamDone(live.context, handle, background, this.#lifecycle.watchdog.failing)
    })
  }

  /**
   * Resolves when NCCL has finished its pending calls.
   *
   * With a nonblocking communicator, await it after each operation or group, before you use the streams or the
   * communicator again. With a blocking communicator, resolves immediately, or after calls on other threads.
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
   * Returns the error of earlier calls, such as a lost connection; undefined if there was no error
   * (`ncclCommGetAsyncError`). After an error only `abort()` works.
   */
  asyncError(): StatusError | undefined {
    this.#lifecycle.requireAlive('asyncError')
    const { handle } = this.#lifecycle.native
    const status = asyncStatus(handle)
    if (status === ncclResult_t.ncclSuccess || status === ncclResult_t.ncclInProgress) return undefined
    return ncclError(status, 'ncclCommGetAsyncError', handle)
  }

  /** Returns NCCL's last error message in this process; empty if there was no error (`ncclGetLastError`). */
  lastError(): string {
    this.#lifecycle.requireAlive('lastError')
    return lastErrorOf(this.#lifecycle.native.handle) ?? ''
  }

  /** Returns the properties and features of this communicator (`ncclCommQueryProperties`, NCCL 2.29). */
  properties(): CommunicatorProperties {
    this.#lifecycle.requireAlive('properties')
    requireIdle(this.#lifecycle.live, 'Communicator.properties')
    return readProperties(this.#lifecycle.native.handle)
  }

  /** Returns the GPU memory of this communicator (`ncclCommMemStats`, NCCL 2.29.7). */
  memoryStatistics(): CommunicatorMemoryStatistics {
    this.#lifecycle.requireAlive('memoryStatistics')
    requireIdle(this.#lifecycle.live, 'Communicator.memoryStatistics')
    return readMemoryStatistics(this.#lifecycle.native.handle)
  }

  /**
   * Creates an id with which new ranks join in one `grow()` (`ncclCommGetUniqueId`, NCCL 2.29). One rank creates the id
   * and passes it to the new ranks and to its own `grow()`. Create another id only after this `grow()`.
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
   * Creates one communicator per color from this one (`ncclCommSplit`, NCCL 2.18, off the JavaScript thread). All ranks
   * call it. Resolves to undefined for a rank with the color null. This communicator stays usable. If the new
   * communicator shares resources with this one (`config.splitShare`), the new communicator ends first.
   *
   * @throws TypeError, RangeError for wrong options; CommunicatorAbortedError when this communicator is aborted during
   * the wait for other ranks; StatusError when NCCL refuses.
   */
  async split(options: SplitOptions): Promise<Communicator | undefined> {
    this.#lifecycle.requireManageable('split')
    return this.#derive('split', options, splitting(this.#origin, options))
  }

  /**
   * Creates a communicator without the ranks in `exclude` (`ncclCommShrink`, NCCL 2.27, off the JavaScript thread). All
   * other ranks call it with the same list and keep their order.
   *
   * @throws RangeError when this rank is excluded, the list is empty, or a rank does not exist; else as `split`.
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
   * Creates a communicator with the ranks of this one and new ranks, which call `Communicator.joinGrown`
   * (`ncclCommGrow`, NCCL 2.29, off the JavaScript thread). All ranks call it. The rank that created the id with
   * `createUniqueId()` passes it here. This communicator stays usable; destroy it when you no longer need it.
   *
   * @throws as `split`.
   */
  async grow(options: GrowOptions): Promise<Communicator> {
    this.#lifecycle.requireUsable('grow')
    return (await this.#derive('grow', options, growing(this.#origin, options))) as Communicator
  }

  /**
   * Ends all work in flight on this rank without freeing the communicator (`ncclCommRevoke`, NCCL 2.28.7, off the
   * JavaScript thread). Waits for this work reject with CommunicatorAbortedError. Afterwards only `split`, `shrink`,
   * `destroy` and `abort` work.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, StatusError when NCCL refuses.
   */
  async revoke(options?: CommunicatorWaitOptions): Promise<void> {
    await revoke(this.#lifecycle, options)
  }

  /**
   * Frees GPU memory that the communicator does not need while idle (`ncclCommSuspend`, NCCL 2.29.7, off the JavaScript
   * thread). `memoryStatistics()` returns the amount. All ranks call `suspend()`, with no work in flight. `resume()`
   * makes the communicator usable again.
   */
  async suspend(options?: CommunicatorWaitOptions): Promise<void> {
    await suspend(this.#lifecycle, options)
  }

  /** Makes a suspended communicator usable again (`ncclCommResume`, NCCL 2.29.7, off the JavaScript thread). */
  async resume(options?: CommunicatorWaitOptions): Promise<void> {
    await resume(this.#lifecycle, options)
  }

  /**
   * Ends all work of this communicator (`ncclCommFinalize`, NCCL 2.14, off the JavaScript thread). No operation may
   * follow, except `destroy()`, which is still required. Idempotent.
   *
   * @throws (rejects) BusyError while a graph uses the communicator; CommunicatorAbortedError when the communicator is
   * aborted meanwhile, StatusError when NCCL refuses.
   */
  async finalize(options?: CommunicatorWaitOptions): Promise<void> {
    await this.#lifecycle.finalize(requireWait(options, 'Communicator.finalize'))
  }

  /**
   * Waits for the communicator's work and frees it (`ncclCommDestroy`, off the JavaScript thread).
   *
   * First frees its windows, registrations and the communicators that share its resources. Idempotent, and unnecessary
   * after an abort. All ranks of a communicator destroy it. While it waits for the device's work, `abort()`, a signal,
   * a time limit or a lost rank ends the wait.
   *
   * @throws (rejects) BusyError while a graph uses the communicator, which stays usable; CommunicatorAbortedError when
   * the communicator is aborted meanwhile; StatusError when NCCL refuses.
   */
  destroy(options?: CommunicatorWaitOptions): Promise<void> {
    try {
      return this.#lifecycle.destroy(requireWait(options, 'Communicator.destroy'))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Ends running operations without waiting for other ranks, and frees the communicator (`ncclCommAbort`, off the
   * JavaScript thread). Use it after a rank is lost. All waits of this communicator reject with
   * CommunicatorAbortedError, also a `destroy()` that still waits for work. Idempotent; no `destroy()` is needed. If
   * NCCL is already freeing the communicator, only waits until it is freed.
   *
   * A call of NCCL on another thread that waits for other ranks cannot be ended (`split` of a blocking communicator).
   * After two seconds, `abort()` resolves with a warning; the communicator is freed when that call returns. A
   * communicator that captured graphs use is freed after the graphs; later launches of these graphs throw.
   */
  abort(): Promise<void> {
    return this.#lifecycle.abort()
  }

  /** Same as `destroy()`. */
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
    // groupEnd() must know about failed operations too.
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

  /** Creates a communicator from this one. */
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

  /** Wraps the communicators that NCCL created, or aborts them if the signal has fired since. */
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

/** Aborts a late communicator, because the caller's wait has already ended. */
function abortUnclaimed(communicator: Communicator | undefined): void {
  communicator?.abort().catch((error: unknown) => {
    process.emitWarning(`${communicator[inspectKey]()} could not be aborted: ${String(error)}`, 'ShoalWarning')
  })
}

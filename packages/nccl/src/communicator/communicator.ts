import { type BackgroundWork, NativeMemory, offThread } from '@shoal/ffi'
import {
  NCCL_REVOKE_DEFAULT,
  NCCL_SHRINK_ABORT,
  NCCL_SHRINK_DEFAULT,
  NCCL_SPLIT_NOCOLOR,
  NCCL_SUSPEND_MEM,
  nccl,
  type ncclComm_t,
  ncclCommAbort,
  ncclCommDestroy,
  ncclCommFinalize,
  ncclCommGetUniqueId,
  ncclCommGrow,
  ncclCommResume,
  ncclCommRevoke,
  ncclCommShrink,
  ncclCommSplit,
  ncclCommSuspend,
  ncclResult_t,
} from '@shoal/nccl-sys'
import type { DeviceLike, StatusError, StreamLike } from '@shoal/types'
import { AbortedError, DisposedError, toDeviceOrdinal } from '@shoal/types'
import { attachSuppressed } from '../attach.js'
import { checkNccl, lastErrorOf, ncclError } from '../errors.js'
import { isGroupOpen } from '../group/groupState.js'
import { asyncStatus, whenSettled } from '../lifetime/asyncStatus.js'
import { type CommunicatorIdentity, CommunicatorStateError } from '../lifetime/communicatorErrors.js'
import { addContext, removeContext } from '../lifetime/contexts.js'
import { forgetLeak, watchForLeak } from '../lifetime/leaks.js'
import { forgetChildren, inTurn, type LiveCommunicator, releaseChildren, requireIdle } from '../lifetime/live.js'
import { releasePrimaryContexts } from '../lifetime/primaryContexts.js'
import { whenContextDone, whenStreamDone } from '../lifetime/streamWait.js'
import {
  type CommunicatorWaitOptions,
  checkWaitOptions,
  type Failure,
  isFatal,
  Watchdog,
} from '../lifetime/watchdog.js'
import { named, streamHandleAt } from '../operations/operands.js'
import { CommunicatorOperations } from './communicatorOperations.js'
import { type CommunicatorConfig, nativeConfig, sharesResources } from './config.js'
import { type Deriving, deriveNative } from './derive.js'
import { abandon, initAllNative, initEachNative, joinNative, type NativeCommunicator } from './init.js'
import {
  type CommunicatorMemoryStatistics,
  type CommunicatorProperties,
  readMemoryStatistics,
  readProperties,
} from './properties.js'
import { UniqueId } from './uniqueId.js'

/** How communicators are made. */
export interface InitOptions {
  /** How the communicator works; what is left out is NCCL's choice. Needs NCCL 2.14. */
  readonly config?: CommunicatorConfig | undefined
  /**
   * Gives up the init when it fires, and afterwards aborts the communicator, at any time: the `lost` signal of a job
   * belongs here. For a limit on the init alone there is `timeout`.
   */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the init. Default: no limit. */
  readonly timeout?: number | undefined
}

/** How one rank of a communicator is made. */
export interface InitRankOptions extends InitOptions {
  /** Device this rank works on: an object of `@shoal/driver`, anything with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** This process's place, from 0 to `worldSize` - 1. Each rank exactly once. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /**
   * The id that one rank made and all of them got. For very many ranks several ids, the same in the same order for all,
   * made by as many ranks (`ncclCommInitRankScalable`, NCCL 2.23).
   */
  readonly id: UniqueId | readonly UniqueId[]
}

/** How one communicator is made from another. `signal` and `timeout` abort both while the call waits for other ranks. */
export interface DeriveOptions extends CommunicatorWaitOptions {
  /** Default: that of the communicator it is made from. */
  readonly config?: CommunicatorConfig | undefined
}

export interface SplitOptions extends DeriveOptions {
  /** Ranks with the same color get a communicator together; null: this rank gets none (`NCCL_SPLIT_NOCOLOR`). */
  readonly color: number | null
  /** Orders the ranks of a color; where it is the same the old rank does. Default: the old rank. */
  readonly key?: number | undefined
}

export interface ShrinkOptions extends DeriveOptions {
  /** Ranks to leave out; they do not call `shrink`. */
  readonly exclude: Iterable<number>
  /**
   * Ends what is under way first (`NCCL_SHRINK_ABORT`): for ranks that are lost. Waits for such work reject with
   * CommunicatorAbortedError, and the old communicator can only be destroyed or aborted. Default: false.
   */
  readonly abort?: boolean | undefined
}

export interface GrowOptions extends DeriveOptions {
  /** Number of ranks afterwards. */
  readonly worldSize: number
  /** On the one rank that made it with `createUniqueId()`; the new ranks have it too, other old ranks do not. */
  readonly id?: UniqueId | undefined
}

/** How a rank joins a communicator that grows. */
export interface JoinGrownOptions extends InitOptions {
  readonly device: DeviceLike | number
  /** Its place in the grown communicator, after those that were there before. */
  readonly rank: number
  /** Number of ranks afterwards. */
  readonly worldSize: number
  /** The id that a rank of the growing communicator made with `createUniqueId()`. */
  readonly id: UniqueId
}

type State = 'open' | 'suspended' | 'revoked' | 'finalized' | 'destroyed' | 'aborted'

/** How long an abort waits for a call of NCCL that runs on another thread and cannot be ended. */
const abortGrace = 2000
const largestInt = 0x7fff_ffff
const firstWithAsyncErrors = 2402
const firstWithFinalize = 21403

/**
 * One rank's end of a group of devices that work together (`ncclComm_t`).
 *
 * Operations are queued on a stream and return at once; `synchronize(stream)` tells when they are done, and that no rank
 * was lost meanwhile. One thread that drives several communicators puts the calls of all of them into `group()`.
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
  readonly device: number
  /** False: NCCL works in the background (`config.blocking`), and `ready()` tells when it is done. */
  readonly isBlocking: boolean
  readonly #native: NativeCommunicator
  readonly #live: LiveCommunicator
  readonly #config: CommunicatorConfig
  readonly #signal: AbortSignal | undefined
  readonly #watchdog: Watchdog
  /** Communicators that share the resources of this one. */
  readonly #sharing = new Set<Communicator>()
  #parent: Communicator | undefined
  #state: State = 'open'
  #finalizing: Promise<void> | undefined
  #ending: Promise<void> | undefined
  #aborting: Promise<void> | undefined
  /** The call of NCCL that frees it, which nothing can stop. */
  #freeing: Promise<unknown> | undefined

  private constructor(
    native: NativeCommunicator,
    identity: Omit<CommunicatorIdentity, 'device'>,
    config: CommunicatorConfig,
    signal: AbortSignal | undefined,
  ) {
    super()
    this.rank = identity.rank
    this.worldSize = identity.worldSize
    this.device = native.context.ordinal
    this.isBlocking = native.isBlocking
    this.#native = native
    this.#config = config
    this.#signal = signal
    const live: LiveCommunicator = {
      handle: native.handle,
      rank: this.rank,
      worldSize: this.worldSize,
      device: this.device,
      context: native.context.handle,
      guard: (operation, work, options) => this.#watchdog.guard(operation, options, work),
      // All there from the start: V8 then sees one shape in every communicator.
      recent: undefined,
      children: undefined,
      pending: undefined,
      clique: undefined,
      grouped: undefined,
      lastOperation: undefined,
      ended: undefined,
    }
    this.#live = live
    this.#watchdog = new Watchdog({
      rank: this.rank,
      worldSize: this.worldSize,
      device: this.device,
      get lastOperation() {
        return live.lastOperation
      },
      status: () => this.#watchedStatus(),
      errorOf: (status) => ncclError(status, 'ncclCommGetAsyncError', native.handle),
      abort: (failure) => this.#abortNow(failure),
    })
    addContext(native.context.handle)
    watchForLeak(this, this.#name())
    if (signal !== undefined) this.#watchdog.watchSignal(signal)
  }

  /**
   * Makes one communicator for each device, all driven by this process; the rank is the place in the list
   * (`ncclCommInitAll`, with a config `ncclCommInitRankConfig` for each; off the JavaScript thread).
   *
   * @throws RangeError for a device that is not there or is named twice.
   * @throws AbortedError when the signal fires, TimeoutError when the time is up, LibraryNotFoundError when there is no
   * CUDA driver or no NCCL, VersionTooOldError for a config that NCCL does not know, StatusError when one of them refuses.
   */
  static async initAll(devices: Iterable<DeviceLike | number>, options: InitOptions = {}): Promise<Communicator[]> {
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
    const waitOptions = checkWaitOptions(options, api)
    const { config } = options
    nativeConfig(config, api)?.dispose()
    const natives =
      config === undefined
        ? await initAllNative(ordinals, waitOptions, api)
        : await initEachNative(ordinals, config, waitOptions, api)
    const made = await Communicator.#adopt(natives, options, api, (_, rank) => ({ rank, worldSize: ordinals.length }))
    for (const one of made) one.#live.clique = natives
    return made
  }

  /**
   * Joins a communicator whose other ranks live in other processes, or in other calls of this function
   * (`ncclCommInitRank`, `ncclCommInitRankConfig`, `ncclCommInitRankScalable`; off the JavaScript thread). Settles when
   * all `worldSize` ranks have come.
   *
   * When the wait is given up, NCCL itself goes on waiting for the other ranks on a thread of its own, which does not keep
   * the process alive, and a communicator that comes of it is aborted at once. With `config: { blocking: false }` the init
   * itself is aborted, and nothing is left of it.
   *
   * @throws TypeError, RangeError for wrong options, before anything native runs.
   * @throws AbortedError when `signal` fires, TimeoutError when the time is up, VersionTooOldError for a config that NCCL
   * does not know, StatusError when the driver or NCCL refuses or another rank is lost.
   */
  static async initRank(options: InitRankOptions): Promise<Communicator> {
    const api = 'Communicator.initRank'
    requireOptions(options, api)
    const { rank, worldSize, config } = options
    const device = named(api, 'device', () => toDeviceOrdinal(options.device))
    requireWorld(rank, worldSize, api)
    const ids = UniqueId._is(options.id) ? [options.id] : [...requireIds(options.id, worldSize, api)]
    const waitOptions = checkWaitOptions(options, api)
    const native = await joinNative({ device, rank, worldSize, ids, config, ...waitOptions }, api)
    const made = await Communicator.#adopt([native], options, api, () => ({ rank, worldSize }))
    for (const one of made) one.#live.clique = String(ids[0])
    return made[0] as Communicator
  }

  /**
   * Joins a communicator that grows, whose old ranks call `grow()` (`ncclCommGrow`, NCCL 2.29, off the JavaScript thread).
   *
   * @throws as `initRank`.
   */
  static async joinGrown(options: JoinGrownOptions): Promise<Communicator> {
    const api = 'Communicator.joinGrown'
    requireOptions(options, api)
    const { rank, worldSize, id, config } = options
    const device = named(api, 'device', () => toDeviceOrdinal(options.device))
    requireWorld(rank, worldSize, api)
    if (!UniqueId._is(id)) throw new TypeError(`${api}: id must be a UniqueId (see createUniqueId)`)
    const waitOptions = checkWaitOptions(options, api)
    const joining = { device, rank, worldSize, ids: [id], config, grows: true, ...waitOptions }
    const native = await joinNative(joining, api)
    const made = await Communicator.#adopt([native], options, api, () => ({ rank, worldSize }))
    return made[0] as Communicator
  }

  /** The `ncclComm_t`, for raw functions of `@shoal/nccl-sys`. Throws DisposedError once it is gone. */
  get handle(): ncclComm_t {
    this.#requireAlive('handle')
    return this.#native.handle
  }

  /** Whether it was destroyed or aborted, also by a signal, a time limit or a lost rank. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /**
   * Resolves when the work queued on `stream` until now has ended and no rank was lost: the way to wait for operations.
   * Waiting for the stream itself is not enough, since NCCL lets a stream go on when its communicator is aborted.
   *
   * A signal or a time limit aborts the communicator. To give up a wait without that, use the wait of the stream.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, for whatever reason.
   * @throws StatusError of the driver when the context has failed; TypeError, RangeError for wrong arguments; Error inside a
   * group, whose operations start when it ends.
   */
  async synchronize(stream: StreamLike | bigint | null, options?: CommunicatorWaitOptions): Promise<void> {
    const api = 'Communicator.synchronize'
    this.#requireUsable('synchronize')
    const waitOptions = checkWaitOptions(options, api)
    const live = this.#live
    const { handle } = streamHandleAt(stream, live, api)
    if (isGroupOpen()) throw new Error(`${api}: a group is open on this thread; its operations start when it ends`)
    await this.#watchdog.guard('synchronize', waitOptions, async (background) => {
      while (live.pending !== undefined) await live.pending.ended
      if (!this.isBlocking) await this.#settled('ncclCommGetAsyncError')
      if (this.#watchdog.failure !== undefined) return
      await whenStreamDone(live.context, handle, background, this.#watchdog.failing)
    })
  }

  /**
   * Resolves when NCCL has done what it was asked: to be awaited after each operation or group of a communicator that is
   * not blocking, before its streams are used or it is called again. Of a blocking one it resolves at once, or when what
   * runs on another thread is over.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, also because NCCL reports an error.
   */
  async ready(options?: CommunicatorWaitOptions): Promise<void> {
    this.#requireAlive('ready')
    const waitOptions = checkWaitOptions(options, 'Communicator.ready')
    const live = this.#live
    await this.#watchdog.guard('ready', waitOptions, async () => {
      while (live.pending !== undefined) await live.pending.ended
      if (!this.isBlocking) await this.#settled('ncclCommGetAsyncError')
    })
  }

  /**
   * What went wrong behind earlier calls, such as a lost connection; undefined when nothing did
   * (`ncclCommGetAsyncError`). After an error only `abort()` helps.
   */
  asyncError(): StatusError | undefined {
    this.#requireAlive('asyncError')
    const { handle } = this.#native
    const status = asyncStatus(handle)
    if (status === ncclResult_t.ncclSuccess || status === ncclResult_t.ncclInProgress) return undefined
    return ncclError(status, 'ncclCommGetAsyncError', handle)
  }

  /** The last thing NCCL had to say about an error in this process, empty when there was none (`ncclGetLastError`). */
  lastError(): string {
    this.#requireAlive('lastError')
    return lastErrorOf(this.#native.handle) ?? ''
  }

  /** What this communicator is and can do (`ncclCommQueryProperties`, NCCL 2.29). */
  properties(): CommunicatorProperties {
    this.#requireAlive('properties')
    requireIdle(this.#live, 'Communicator.properties')
    return readProperties(this.#native.handle)
  }

  /** GPU memory of this communicator (`ncclCommMemStats`, NCCL 2.29.7). */
  memoryStatistics(): CommunicatorMemoryStatistics {
    this.#requireAlive('memoryStatistics')
    requireIdle(this.#live, 'Communicator.memoryStatistics')
    return readMemoryStatistics(this.#native.handle)
  }

  /**
   * An id by which new ranks join this communicator in one `grow()` (`ncclCommGetUniqueId`, NCCL 2.29). One rank makes it,
   * gives it to the new ranks and to its own `grow()`; there is no second one before that is done.
   */
  createUniqueId(): UniqueId {
    this.#requireUsable('createUniqueId')
    requireIdle(this.#live, 'Communicator.createUniqueId')
    const bytes = new Uint8Array(UniqueId.byteLength)
    const { handle } = this.#native
    checkNccl(ncclCommGetUniqueId(handle, bytes), 'ncclCommGetUniqueId', handle)
    return UniqueId.fromBytes(bytes)
  }

  /**
   * Makes communicators out of this one, one for each color (`ncclCommSplit`, NCCL 2.18, off the JavaScript thread). All
   * ranks call it. Undefined for a rank with the color null. This communicator stays as it is; where the new one shares its
   * resources (`config.splitShare`), it ends before this one.
   *
   * @throws TypeError, RangeError for wrong options; CommunicatorAbortedError when this communicator is aborted while it
   * waits for the others; StatusError when NCCL refuses.
   */
  async split(options: SplitOptions): Promise<Communicator | undefined> {
    const api = 'Communicator.split'
    this.#requireManageable('split')
    requireOptions(options, api)
    const { color, key = this.rank } = options
    if (color !== null) requireWhole(color, 'color', 0, largestInt, api)
    requireWhole(key, 'key', -largestInt - 1, largestInt, api)
    const { handle } = this.#native
    return this.#derive('split', options, {
      api: 'ncclCommSplit',
      shares: sharesResources(this.#config, 'split'),
      keep: [],
      call: (out, config) => void ncclCommSplit(handle, color ?? NCCL_SPLIT_NOCOLOR, key, out, config),
    })
  }

  /**
   * Makes a communicator of the ranks that are not in `exclude` (`ncclCommShrink`, NCCL 2.27, off the JavaScript thread).
   * They all call it with the same list and keep their order.
   *
   * @throws RangeError when this rank is excluded, nobody is, or a rank is not there; else as `split`.
   */
  async shrink(options: ShrinkOptions): Promise<Communicator> {
    const api = 'Communicator.shrink'
    this.#requireManageable('shrink')
    requireOptions(options, api)
    const exclude = requireExcluded(options.exclude, this.rank, this.worldSize, api)
    const aborts = options.abort === true
    if (options.abort !== undefined && typeof options.abort !== 'boolean') {
      throw new TypeError(`${api}: abort must be a boolean`)
    }
    checkWaitOptions(options, api)
    nativeConfig(options.config, api)?.dispose()
    const { handle } = this.#native
    const list = NativeMemory.allocate(4 * exclude.length)
    list.i32.set(exclude)
    const flags = aborts ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT
    const shares = !aborts && this.#state !== 'revoked' && sharesResources(this.#config, 'shrink')
    const rejectWaits = aborts ? this.#revoked('shrink') : undefined
    try {
      const made = await this.#derive('shrink', options, {
        api: 'ncclCommShrink',
        shares,
        keep: [list],
        call: (out, config) => void ncclCommShrink(handle, list, exclude.length, out, config, flags),
      })
      return made as Communicator
    } finally {
      list.dispose()
      rejectWaits?.()
    }
  }

  /**
   * Makes a communicator of these ranks and new ones, which call `Communicator.joinGrown` (`ncclCommGrow`, NCCL 2.29, off
   * the JavaScript thread). All ranks call it; one of them has made the id with `createUniqueId()` and gives it here. This
   * communicator stays; destroy it when it is no longer needed.
   *
   * @throws as `split`.
   */
  async grow(options: GrowOptions): Promise<Communicator> {
    const api = 'Communicator.grow'
    this.#requireUsable('grow')
    requireOptions(options, api)
    const { worldSize, id } = options
    requireWhole(worldSize, 'worldSize', this.worldSize + 1, largestInt, api)
    if (id !== undefined && !UniqueId._is(id)) throw new TypeError(`${api}: id must be a UniqueId (see createUniqueId)`)
    const { handle } = this.#native
    const bytes = NativeMemory.allocate(UniqueId.byteLength)
    if (id !== undefined) bytes.bytes.set(id.toBytes())
    try {
      const made = await this.#derive('grow', options, {
        api: 'ncclCommGrow',
        shares: false,
        keep: [bytes],
        call: (out, config) => void ncclCommGrow(handle, worldSize, id === undefined ? null : bytes, -1, out, config),
      })
      return made as Communicator
    } finally {
      bytes.dispose()
    }
  }

  /**
   * Ends everything that is under way on this rank, without freeing the communicator (`ncclCommRevoke`, NCCL 2.28.7, off the
   * JavaScript thread). Waits for such work reject with CommunicatorAbortedError. Afterwards `split`, `shrink`, `destroy` and
   * `abort` are left.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, StatusError when NCCL refuses.
   */
  async revoke(options?: CommunicatorWaitOptions): Promise<void> {
    this.#requireUsable('revoke')
    const waitOptions = checkWaitOptions(options, 'Communicator.revoke')
    const rejectWaits = this.#revoked('revoke')
    try {
      await this.#guarded('revoke', waitOptions, (background) =>
        this.#call(
          'ncclCommRevoke',
          () => void ncclCommRevoke(this.#native.handle, NCCL_REVOKE_DEFAULT),
          background,
          false,
        ),
      )
    } finally {
      rejectWaits()
    }
  }

  /**
   * Gives back the GPU memory of the communicator that it can do without while it is not used (`ncclCommSuspend`, NCCL
   * 2.29.7, off the JavaScript thread): `memoryStatistics()` tells how much. All ranks call it, with nothing under way.
   * `resume()` makes it usable again.
   */
  async suspend(options?: CommunicatorWaitOptions): Promise<void> {
    this.#requireUsable('suspend')
    const waitOptions = checkWaitOptions(options, 'Communicator.suspend')
    await this.#guarded('suspend', waitOptions, async (background) => {
      await this.#call('ncclCommSuspend', () => void ncclCommSuspend(this.#native.handle, NCCL_SUSPEND_MEM), background)
      if (this.#state === 'open') this.#state = 'suspended'
    })
  }

  /** Makes a suspended communicator usable again (`ncclCommResume`, NCCL 2.29.7, off the JavaScript thread). */
  async resume(options?: CommunicatorWaitOptions): Promise<void> {
    if (this.#state !== 'suspended') this.#requireUsable('resume')
    const waitOptions = checkWaitOptions(options, 'Communicator.resume')
    await this.#guarded('resume', waitOptions, async (background) => {
      await this.#call('ncclCommResume', () => void ncclCommResume(this.#native.handle), background)
      if (this.#state === 'suspended') this.#state = 'open'
    })
  }

  /**
   * Ends all work of this communicator (`ncclCommFinalize`, NCCL 2.14, off the JavaScript thread); `destroy()` is still
   * to be called. No operation may follow. Idempotent.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, StatusError when NCCL refuses.
   */
  finalize(options?: CommunicatorWaitOptions): Promise<void> {
    if (this.#state !== 'finalized') this.#requireUsable('finalize')
    else this.#requireAlive('finalize')
    const waitOptions = checkWaitOptions(options, 'Communicator.finalize')
    this.#state = 'finalized'
    this.#finalizing ??= this.#watchdog.guard('finalize', waitOptions, async (background) => {
      await this.#closeChildren('finalize')
      await inTurn([this.#live], 'finalize', () => this.#finalizeNow(background))
    })
    return this.#finalizing
  }

  /**
   * Waits for the work of this communicator and frees it (`ncclCommDestroy`, off the JavaScript thread), after what was
   * made with it: windows, registrations, communicators that share its resources. Idempotent, and nothing to do after an
   * abort. All ranks of a communicator destroy it.
   *
   * While it waits for the work of the device, `abort()`, a signal, a time limit and a lost rank end the wait.
   *
   * @throws CommunicatorAbortedError when the communicator is aborted meanwhile, StatusError when NCCL refuses.
   */
  destroy(options?: CommunicatorWaitOptions): Promise<void> {
    if (this.#ending !== undefined) return this.#ending
    let waitOptions: CommunicatorWaitOptions
    try {
      waitOptions = checkWaitOptions(options, 'Communicator.destroy')
    } catch (error) {
      return Promise.reject(error)
    }
    const isQuiet = this.#state === 'finalized' || this.#state === 'revoked' || this.#state === 'suspended'
    this.#state = 'destroyed'
    forgetLeak(this)
    this.#ending = this.#watchdog.guard('destroy', waitOptions, async (background) => {
      // A failed finalize() has told its own caller.
      await this.#finalizing?.catch(() => undefined)
      await this.#closeChildren('destroy')
      await inTurn([this.#live], 'destroy', () => this.#destroyNow(isQuiet, background))
    })
    return this.#ending
  }

  /**
   * Ends operations that are still running, without waiting for other ranks, and frees the communicator
   * (`ncclCommAbort`, off the JavaScript thread): the way out when a rank is lost. Everything that waits for this
   * communicator rejects with CommunicatorAbortedError, also a `destroy()` that still waits for work. Idempotent; no
   * `destroy()` follows. Once NCCL is freeing the communicator it only waits for that.
   *
   * A call of NCCL that waits for other ranks on another thread cannot be ended (`split` of a blocking communicator). After
   * two seconds the communicator is then left to it, with a warning, and freed when it returns.
   */
  abort(): Promise<void> {
    if (this.#aborting !== undefined) return this.#aborting
    const hasWork = this.#live.lastOperation !== undefined || this.#live.pending !== undefined
    if (this.#ending !== undefined && (this.#freeing !== undefined || !hasWork)) return this.#ending
    this.#watchdog.fail({ reason: 'abort' })
    return this.#aborting ?? Promise.resolve()
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

  /** @internal */
  protected override _use(operation: string): LiveCommunicator {
    if (this.#state !== 'open') throw this.#refusal(operation)
    return this.#live
  }

  #name(): string {
    return `Communicator of rank ${this.rank} of ${this.worldSize} on device ${this.device}`
  }

  #requireUsable(operation: string): void {
    if (this.#state !== 'open') throw this.#refusal(operation)
  }

  #requireManageable(operation: string): void {
    if (this.#state !== 'revoked') this.#requireUsable(operation)
  }

  #requireAlive(operation: string): void {
    if (this.#ending !== undefined) throw this.#refusal(operation)
  }

  #refusal(operation: string): Error {
    const { rank, worldSize, device } = this
    const state = this.#state
    if (state === 'suspended' || state === 'revoked') {
      return new CommunicatorStateError({ operation, state, rank, worldSize, device })
    }
    const isOwnAbort = this.#watchdog.failure?.reason === 'abort'
    const failed = isOwnAbort ? undefined : this.#watchdog.refusal(operation)
    return failed ?? new DisposedError({ object: this.#name(), operation })
  }

  /** What the watchdog sees. While NCCL works for a communicator that is not blocking, whoever waits for that asks. */
  #watchedStatus(): number {
    if (this.#freeing !== undefined || this.#aborting !== undefined) return ncclResult_t.ncclSuccess
    if (!this.isBlocking && this.#live.pending !== undefined) return ncclResult_t.ncclInProgress
    if (!nccl.has('ncclCommGetAsyncError', firstWithAsyncErrors)) return ncclResult_t.ncclSuccess
    return asyncStatus(this.#native.handle)
  }

  /** Runs `work` when nothing else runs with this communicator; the promise rejects when it is aborted meanwhile. */
  #guarded<T>(
    operation: string,
    options: CommunicatorWaitOptions,
    work: (background: BackgroundWork) => Promise<T>,
  ): Promise<T> {
    return this.#watchdog.guard(operation, options, (background) =>
      inTurn([this.#live], operation, () => work(background)),
    )
  }

  /** Makes a call of NCCL on another thread and waits until NCCL is done with it. */
  async #call(api: string, call: () => void, background: BackgroundWork, settlesFirst = true): Promise<void> {
    if (settlesFirst && !this.isBlocking) await this.#settled(api)
    const [status = 0] = await offThread({ context: this.#live.context, background }, call)
    checkNccl(status, api, this.#native.handle)
    if (status === ncclResult_t.ncclInProgress) await this.#settled(api)
  }

  /** Waits while NCCL is at work in the background. */
  async #settled(api: string): Promise<void> {
    const { handle } = this.#native
    const status = await whenSettled(
      () => asyncStatus(handle),
      () => this.#watchdog.failure !== undefined,
    )
    // The watchdog tells the caller why.
    if (status === undefined) throw new AbortedError(api)
    if (status !== ncclResult_t.ncclSuccess) throw ncclError(status, api, handle)
  }

  /** What was made with this communicator ends before it does. */
  async #closeChildren(how: 'finalize' | 'destroy'): Promise<void> {
    // A group that is open on this thread may hold operations of this communicator; it ends before the next microtask.
    await undefined
    while (this.#live.pending !== undefined) await this.#live.pending.ended
    const problems = await releaseChildren(this.#live)
    if (how === 'destroy') {
      const ends = await Promise.allSettled([...this.#sharing].map((child) => child.destroy()))
      problems.push(...ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : [])))
    }
    for (const problem of problems.slice(1)) attachSuppressed(problems[0], problem)
    this.#problem ??= problems.length === 0 ? undefined : { error: problems[0] }
  }

  /** What failed on the way to the end, which goes on all the same. */
  #problem: { readonly error: unknown } | undefined

  #throwProblem(): void {
    const problem = this.#problem
    this.#problem = undefined
    if (problem !== undefined) throw problem.error
  }

  async #finalizeNow(background: BackgroundWork): Promise<void> {
    const { handle } = this.#native
    if (this.isBlocking) await this.#quiet(background)
    await this.#call('ncclCommFinalize', () => void ncclCommFinalize(handle), background)
    this.#throwProblem()
  }

  async #destroyNow(isQuiet: boolean, background: BackgroundWork): Promise<void> {
    const { handle } = this.#native
    if (!isQuiet) await this.#workEnded(background)
    if (this.#watchdog.failure !== undefined) return
    await this.#free('ncclCommDestroy', () => void ncclCommDestroy(handle), background)
    this.#throwProblem()
  }

  /**
   * Waits for the work before the communicator is freed: NCCL tells what has failed, and the watchdog can look at it, only
   * until then.
   */
  async #workEnded(background: BackgroundWork): Promise<void> {
    if (this.isBlocking) await this.#quiet(background)
    if (!nccl.has('ncclCommFinalize', firstWithFinalize)) return
    try {
      await this.#call('ncclCommFinalize', () => void ncclCommFinalize(this.#native.handle), background)
    } catch (error) {
      // A lost communicator is aborted; any other one is freed all the same.
      if (isFatal(error) || this.#watchdog.failure !== undefined) throw error
      this.#problem ??= { error }
    }
  }

  /**
   * Waits until the device has done its work. NCCL would wait itself, but in a call that nothing can end, and a
   * communicator cannot be aborted beside it.
   */
  async #quiet(background: BackgroundWork): Promise<void> {
    if (this.#live.lastOperation === undefined) return
    try {
      await whenContextDone(this.#live.context, background, this.#watchdog.failing)
    } catch (error) {
      if (this.#watchdog.failure !== undefined) throw error
      // A context that has failed has ended its work: what NCCL makes of it is for NCCL to say.
    }
  }

  async #free(api: string, call: () => void, background: BackgroundWork = {}): Promise<void> {
    this.#live.ended = this.#state
    const { context } = this.#native
    const freeing = offThread({ context: context.handle, background }, call)
    this.#freeing = freeing.catch(() => undefined)
    try {
      const [status = 0] = await freeing
      checkNccl(status, api)
    } finally {
      this.#watchdog.stop()
      if (this.#parent !== undefined) this.#parent.#sharing.delete(this)
      removeContext(context.handle)
      await releasePrimaryContexts([context])
    }
  }

  /** For the watchdog: the communicator ends now. */
  #abortNow(failure: Failure): Promise<void> {
    this.#state = 'aborted'
    this.#live.ended = 'aborted'
    forgetLeak(this)
    const aborting = this.#abort(failure)
    this.#aborting = aborting
    this.#ending ??= aborting
    // The watchdog tells whoever waits.
    aborting.catch(() => undefined)
    return aborting
  }

  async #abort(failure: Failure): Promise<void> {
    // A group that is open on this thread may hold operations of this communicator; it ends before the next microtask.
    await undefined
    for (const child of this.#sharing) child.#watchdog.fail({ reason: 'parent', cause: failure.cause })
    if (this.#freeing !== undefined) {
      if (!(await endsSoon(this.#freeing))) this.#warnStuck('it is freed when that returns')
      return
    }
    forgetChildren(this.#live)
    const free = (): Promise<void> => this.#free('ncclCommAbort', () => void ncclCommAbort(this.#native.handle))
    const { pending } = this.#live
    if (pending === undefined || (await endsSoon(pending.ended))) return free()
    this.#warnStuck('it is aborted when that returns')
    pending.ended.then(free).catch((error: unknown) => {
      process.emitWarning(`${this.#name()} could not be aborted: ${String(error)}`, 'ShoalWarning')
    })
  }

  #warnStuck(what: string): void {
    process.emitWarning(
      `${this.#name()}: a call of NCCL waits for other ranks on another thread and cannot be ended; ${what}`,
      'ShoalWarning',
    )
  }

  /** No operation follows; waits for what is under way are going to be rejected by the function returned. */
  #revoked(operation: string): () => void {
    this.#state = 'revoked'
    return this.#watchdog.interrupt(operation)
  }

  /** Makes a communicator out of this one. */
  #derive(operation: string, options: DeriveOptions, deriving: Deriving): Promise<Communicator | undefined> {
    const waitOptions = checkWaitOptions(options, `Communicator.${operation}`)
    const config = nativeConfig(options.config, `Communicator.${operation}`)
    return this.#guarded(operation, waitOptions, async (background) => {
      if (!this.isBlocking) await this.#settled(deriving.api)
      const { device, isBlocking } = this
      const settled = (): Promise<void> => this.#settled(deriving.api)
      const isOver = (): boolean => this.#watchdog.failure !== undefined
      const parent = { ...this.#native, device, isBlocking, settled, isOver, aborting: () => this.#aborting }
      const made = await deriveNative(parent, deriving, config, options.config?.blocking, background)
      if (made === undefined) return undefined
      const child = new Communicator(made.native, made, options.config ?? this.#config, this.#signal)
      if (deriving.shares) {
        this.#sharing.add(child)
        child.#parent = this
      }
      return child
    })
  }

  /** Communicators for what NCCL has made, unless the signal has fired since. */
  static async #adopt(
    natives: readonly NativeCommunicator[],
    { config = {}, signal }: InitOptions,
    api: string,
    identity: (native: NativeCommunicator, index: number) => Omit<CommunicatorIdentity, 'device'>,
  ): Promise<Communicator[]> {
    if (signal?.aborted === true) {
      await Promise.all(natives.map(abandon))
      throw new AbortedError({ operation: api, cause: signal.reason })
    }
    return natives.map((native, index) => new Communicator(native, identity(native, index), config, signal))
  }
}

/** Whether a promise that never rejects settles within the time an abort has. */
async function endsSoon(ended: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), abortGrace)
  })
  const soon = await Promise.race([ended.then(() => true), late])
  clearTimeout(timer)
  return soon
}

function requireOptions(options: unknown, api: string): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${api}: options are needed`)
}

function requireWorld(rank: unknown, worldSize: unknown, api: string): void {
  requireWhole(worldSize, 'worldSize', 1, largestInt, api)
  requireWhole(rank, 'rank', 0, (worldSize as number) - 1, api)
}

function requireIds(ids: unknown, worldSize: number, api: string): readonly UniqueId[] {
  if (!Array.isArray(ids) || !ids.every(UniqueId._is)) {
    throw new TypeError(`${api}: id must be a UniqueId (see UniqueId.fromBytes), or a list of them`)
  }
  if (ids.length >= 1 && ids.length <= worldSize) return ids
  throw new RangeError(`${api}: there must be from 1 to ${worldSize} ids, one a rank at most, got ${ids.length}`)
}

function requireExcluded(exclude: unknown, rank: number, worldSize: number, api: string): number[] {
  if (typeof (exclude as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] !== 'function') {
    throw new TypeError(`${api}: exclude must be a list of ranks`)
  }
  const ranks = [...new Set(exclude as Iterable<number>)]
  for (const one of ranks) requireWhole(one, 'exclude', 0, worldSize - 1, api)
  if (ranks.length === 0) throw new RangeError(`${api}: exclude names no rank`)
  if (ranks.includes(rank)) throw new RangeError(`${api}: rank ${rank} is in exclude, so it must not call shrink`)
  return ranks.sort((a, b) => a - b)
}

function requireWhole(value: unknown, name: string, least: number, most: number, api: string): void {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${api}: ${name} must be a number`)
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw new RangeError(`${api}: ${name} must be a whole number from ${least} to ${most}, got ${value}`)
}

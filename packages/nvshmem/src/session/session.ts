import {
  forgetLeak,
  type PrimaryContext,
  releasePrimaryContexts,
  retainPrimaryContexts,
  watchForLeak,
} from '@shoal/cuda-base/basics'
import { nvshmem_global_exit, nvshmemx_hostlib_finalize } from '@shoal/nvshmem-sys'
import { DisposedError, type DType, FeatureNotSupportedError, type MemoryLike } from '@shoal/types'
import { AtomicKernels } from '../atomics/atomicKernels.js'
import { AtomicOperations } from '../atomics/atomics.js'
import { requireWhole } from '../checks.js'
import { DeviceCode } from '../deviceCode/deviceCode.js'
import { nvshmemError, SessionExistsError } from '../errors.js'
import type { HeapOptions } from '../heap/allocation.js'
import { HeapRoom } from '../heap/heapRoom.js'
import { type Registration, register, registerSymmetric, unregisterAll } from '../heap/registration.js'
import { allocateElements, type SymmetricBuffer } from '../heap/symmetricBuffer.js'
import type { LocalMemory, LocalOperand } from '../operands.js'
import { noRecentTransfers, queueTransfer, startTransfer, transferAndWait, transferSync } from '../rma/contiguous.js'
import {
  type ElementOptions,
  getElement,
  getElementOnStream,
  getElementSync,
  putElement,
  putElementSync,
  queuePutElement,
  type StreamElementOptions,
  type WaitingElementOptions,
} from '../rma/element.js'
import { type PutSignalOptions, queuePutSignal } from '../rma/putSignal.js'
import {
  queueStrided,
  type StreamStridedOptions,
  type StridedOptions,
  strided,
  stridedSync,
  type WaitingStridedOptions,
} from '../rma/strided.js'
import type { StreamTransferOptions, TransferOptions, WaitingTransferOptions } from '../rma/types.js'
import { Signals } from '../signals/signals.js'
import { type CreateTeamOptions, createTeam, teamUniqueId } from '../teams/split.js'
import { Team } from '../teams/team.js'
import type { ElementOf, ElementValue } from '../values.js'
import type { CallQueue, WaitOptions } from './callQueue.js'
import { type CheckedInit, checkInit, type InitOptions, type ThreadLevel, threadLevels } from './initOptions.js'
import type { LiveSession } from './live.js'
import { loadLibraries, predefinedTeams, type Started, start } from './start.js'
import { isRunning } from './status.js'
import { type OnStreamOptions, queueSynchronization, synchronize, synchronizeSync } from './synchronization.js'

/** The session of this process, or what became of it. NVSHMEM's state is the process's, so there is one at most. */
let current: { readonly what: string } | undefined
/** Whether there was one. NVSHMEM keeps how it was brought together for good, and crashes when it is started once more. */
let wasStarted = false

/**
 * This process's part of an NVSHMEM job: one PE on one device. One process is one PE, and has one session at a time.
 *
 * NVSHMEM takes one call at a time, and most of them wait for other PEs. So each call waits for its turn on a thread that
 * belongs to the session, in the order in which they were made, and gives a promise; calls that only start or queue
 * something run at once where nothing is waiting. The `…Sync` twins run on the JavaScript thread and block it.
 *
 * Operands are checked before the call: what is wrong rejects the promise with TypeError, RangeError or DisposedError.
 */
export class Session {
  /** This process's PE (`nvshmem_my_pe`). */
  readonly pe: number
  /** Number of PEs (`nvshmem_n_pes`). */
  readonly peCount: number
  /** Ordinal of the device of this PE. */
  readonly device: number
  /** What other threads of this process may do beside the session (`nvshmem_query_thread`). */
  readonly threadLevel: ThreadLevel
  /** All PEs (`NVSHMEM_TEAM_WORLD`). */
  readonly world: Team
  /** The PEs whose memory this one can address directly (`NVSHMEM_TEAM_SHARED`). */
  readonly shared: Team
  /** The PEs of this machine (`NVSHMEMX_TEAM_NODE`). */
  readonly node: Team
  /** The PEs that have on their machine the same number as this one on its own (`NVSHMEMX_TEAM_SAME_MYPE_NODE`). */
  readonly samePeIndex: Team
  /** Operations on single elements that nothing comes between. */
  readonly atomics: AtomicOperations
  /** Words by which PEs tell each other that something has happened. */
  readonly signals: Signals
  /** Kernels that call NVSHMEM themselves. */
  readonly deviceCode: DeviceCode
  readonly #queue: CallQueue
  readonly #context: PrimaryContext
  readonly #live: LiveSession
  readonly #memory: readonly object[]
  readonly #kernels: AtomicKernels | undefined
  readonly #untilQuiet = new Set<object>()
  #ended: string | undefined
  #ending: Promise<void> | undefined

  private constructor(started: Started, context: PrimaryContext) {
    const { queue, pe, peCount, threadLevel, places, memory, atomics } = started
    this.#kernels = atomics instanceof AtomicKernels ? atomics : undefined
    this.pe = pe
    this.peCount = peCount
    this.device = context.ordinal
    this.threadLevel = threadLevels[threadLevel] ?? 'single'
    this.#queue = queue
    this.#context = context
    this.#memory = memory
    this.#live = this.#makeLive()
    const [world, shared, node, samePeIndex] = predefinedTeams.map(({ name, handle }, index) => {
      const place = places[index] as { readonly pe: number; readonly peCount: number }
      return new Team({ live: this.#live, handle, name, ...place, isPredefined: true })
    }) as [Team, Team, Team, Team]
    this.world = world
    this.shared = shared
    this.node = node
    this.samePeIndex = samePeIndex
    this.atomics = new AtomicOperations(this.#live, atomics)
    this.signals = new Signals(this.#live)
    this.deviceCode = new DeviceCode(this.#live)
    watchForLeak(this, `The NVSHMEM session of PE ${pe}`, () => 'it runs until the process ends', 'finalize()')
  }

  /**
   * Starts NVSHMEM in this process and waits for the other PEs (`nvshmemx_hostlib_init_attr`, on the thread of the
   * session): by an id that one process made and all of them got, or by what launched them.
   *
   * @throws SessionExistsError when NVSHMEM runs in this process already, or has run: it cannot be started twice.
   * @throws TypeError, RangeError for wrong options, before anything native runs.
   * @throws TimeoutError, AbortedError when it is given up; NVSHMEM can then not be started in this process any more.
   * @throws LibraryNotFoundError when there is no driver or no NVSHMEM, StatusError when one of them refuses.
   */
  static async init(options: InitOptions): Promise<Session> {
    const api = 'Session.init'
    const checked = checkInit(options, api)
    loadLibraries()
    refuseSecond(api)
    current = { what: 'is starting' }
    let context: PrimaryContext | undefined
    try {
      context = (await retainPrimaryContexts([checked.ordinal], api))[0] as PrimaryContext
    } catch (error) {
      current = undefined
      throw error
    }
    wasStarted = true
    try {
      const started = await start(checked, context, api)
      requirePlace(checked, started)
      current = { what: 'is running' }
      return new Session(started, context)
    } catch (error) {
      // The thread may still be inside of NVSHMEM: the context stays, and no second start is safe.
      current = { what: 'did not start' }
      throw error
    }
  }

  /** Whether `finalize()` or `abandon()` was called. */
  get disposed(): boolean {
    return this.#ended !== undefined
  }

  /** The call that is under way, undefined when there is none. */
  get waitingFor(): string | undefined {
    return this.#queue.underWay
  }

  /** The call that was given up and has not returned: until it does, the session is of no use. */
  get stuckIn(): string | undefined {
    return this.#queue.stuckIn
  }

  /**
   * Symmetric memory for `length` elements (`nvshmem_malloc`, `nvshmem_align`, `nvshmem_calloc`). Every PE calls it with
   * the same dtype, length and options, in the same order; it settles when all have.
   *
   * @throws StatusError (NVSHMEMX_ERROR_OUT_OF_MEMORY) when the device has no room for it, before NVSHMEM is asked, which
   * would end the process; or when the heap has none (`NVSHMEM_SYMMETRIC_SIZE`).
   */
  allocate<D extends DType>(dtype: D, length: number, options: HeapOptions = {}): Promise<SymmetricBuffer<D>> {
    return this.#checked('allocate', () => allocateElements(this.#live, dtype, length, options))
  }

  /**
   * Copies elements of `source`, memory of this process, into `target` of PE `pe` (`nvshmem_<type>_put`). When the
   * promise settles `source` may be used again; the elements have arrived after `quiet()` or a barrier.
   */
  put(target: SymmetricBuffer, source: LocalOperand, options: WaitingTransferOptions): Promise<void> {
    return this.#checked('put', () => transferAndWait(this.#live, 'put', target, source, options))
  }

  /** Like {@link put}, and blocks the thread. @throws SessionBusyError */
  putSync(target: SymmetricBuffer, source: LocalOperand, options: TransferOptions): void {
    this.#live.requireOpen('Session.putSync')
    transferSync(this.#live, 'put', target, source, options)
  }

  /** Starts a put that `quiet()` waits for (`nvshmem_<type>_put_nbi`); `source` must stay as it is until then. */
  putNonBlocking(target: SymmetricBuffer, source: LocalMemory, options: TransferOptions): Promise<void> {
    return this.#checked('putNonBlocking', () => startTransfer(this.#live, 'put', target, source, options))
  }

  /** Queues a put on a stream (`nvshmemx_<type>_put_on_stream`). */
  putOnStream(target: SymmetricBuffer, source: LocalMemory, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this.#live, 'put', target, source, options, false)
  }

  /** Queues the start of a put on a stream; `quietOnStream` completes it (`nvshmemx_<type>_put_nbi_on_stream`). */
  putNonBlockingOnStream(target: SymmetricBuffer, source: LocalMemory, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this.#live, 'put', target, source, options, true)
  }

  /**
   * Copies elements of `source` of PE `pe` into `target`, memory of this process, where they are when the promise
   * settles (`nvshmem_<type>_get`).
   */
  get(target: LocalOperand, source: SymmetricBuffer, options: WaitingTransferOptions): Promise<void> {
    return this.#checked('get', () => transferAndWait(this.#live, 'get', target, source, options))
  }

  /** Like {@link get}, and blocks the thread. @throws SessionBusyError */
  getSync(target: LocalOperand, source: SymmetricBuffer, options: TransferOptions): void {
    this.#live.requireOpen('Session.getSync')
    transferSync(this.#live, 'get', target, source, options)
  }

  /** Starts a get whose elements are there after `quiet()` (`nvshmem_<type>_get_nbi`). */
  getNonBlocking(target: LocalMemory, source: SymmetricBuffer, options: TransferOptions): Promise<void> {
    return this.#checked('getNonBlocking', () => startTransfer(this.#live, 'get', target, source, options))
  }

  /** Queues a get on a stream (`nvshmemx_<type>_get_on_stream`). */
  getOnStream(target: LocalMemory, source: SymmetricBuffer, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this.#live, 'get', target, source, options, false)
  }

  /** Queues the start of a get on a stream; `quietOnStream` completes it (`nvshmemx_<type>_get_nbi_on_stream`). */
  getNonBlockingOnStream(target: LocalMemory, source: SymmetricBuffer, options: StreamTransferOptions): Promise<void> {
    return queueTransfer(this.#live, 'get', target, source, options, true)
  }

  /** Writes one element of PE `pe` (`nvshmem_<type>_p`). It has arrived after `quiet()` or a barrier. */
  putElement<D extends DType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return this.#checked('putElement', () => putElement(this.#live, target, value, options))
  }

  /** Like {@link putElement}, and blocks the thread. @throws SessionBusyError */
  putElementSync<D extends DType>(target: SymmetricBuffer<D>, value: ElementValue<D>, options: ElementOptions): void {
    this.#live.requireOpen('Session.putElementSync')
    putElementSync(this.#live, target, value, options)
  }

  /** Queues the writing of one element on a stream (`nvshmemx_<type>_p_on_stream`). */
  putElementOnStream<D extends DType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: StreamElementOptions,
  ): Promise<void> {
    return this.#checked('putElementOnStream', () => queuePutElement(this.#live, target, value, options))
  }

  /** One element of PE `pe` (`nvshmem_<type>_g`); halves as the number they stand for. */
  getElement<D extends DType>(source: SymmetricBuffer<D>, options: WaitingElementOptions): Promise<ElementOf<D>> {
    return this.#checked('getElement', () => getElement(this.#live, source, options) as Promise<ElementOf<D>>)
  }

  /** Like {@link getElement}, and blocks the thread. @throws SessionBusyError */
  getElementSync<D extends DType>(source: SymmetricBuffer<D>, options: ElementOptions): ElementOf<D> {
    this.#live.requireOpen('Session.getElementSync')
    return getElementSync(this.#live, source, options) as ElementOf<D>
  }

  /** One element of PE `pe` as it is when a stream gets there, which is waited for (`nvshmemx_<type>_g_on_stream`). */
  getElementOnStream<D extends DType>(
    source: SymmetricBuffer<D>,
    options: StreamElementOptions & WaitOptions,
  ): Promise<ElementOf<D>> {
    const read = (): Promise<ElementOf<D>> => getElementOnStream(this.#live, source, options) as Promise<ElementOf<D>>
    return this.#checked('getElementOnStream', read)
  }

  /** Copies every so manieth element to every so manieth of PE `pe` (`nvshmem_<type>_iput`); see {@link put}. */
  putStrided(target: SymmetricBuffer, source: LocalOperand, options: WaitingStridedOptions): Promise<void> {
    return this.#checked('putStrided', () => strided(this.#live, 'put', target, source, options))
  }

  /** Like {@link putStrided}, and blocks the thread. @throws SessionBusyError */
  putStridedSync(target: SymmetricBuffer, source: LocalOperand, options: StridedOptions): void {
    this.#live.requireOpen('Session.putStridedSync')
    stridedSync(this.#live, 'put', target, source, options)
  }

  /** Queues it on a stream (`nvshmemx_<type>_iput_on_stream`). */
  putStridedOnStream(target: SymmetricBuffer, source: LocalMemory, options: StreamStridedOptions): Promise<void> {
    return this.#checked('putStridedOnStream', () => queueStrided(this.#live, 'put', target, source, options))
  }

  /** Copies every so manieth element of PE `pe` to every so manieth here (`nvshmem_<type>_iget`); see {@link get}. */
  getStrided(target: LocalOperand, source: SymmetricBuffer, options: WaitingStridedOptions): Promise<void> {
    return this.#checked('getStrided', () => strided(this.#live, 'get', target, source, options))
  }

  /** Like {@link getStrided}, and blocks the thread. @throws SessionBusyError */
  getStridedSync(target: LocalOperand, source: SymmetricBuffer, options: StridedOptions): void {
    this.#live.requireOpen('Session.getStridedSync')
    stridedSync(this.#live, 'get', target, source, options)
  }

  /** Queues it on a stream (`nvshmemx_<type>_iget_on_stream`). */
  getStridedOnStream(target: LocalMemory, source: SymmetricBuffer, options: StreamStridedOptions): Promise<void> {
    return this.#checked('getStridedOnStream', () => queueStrided(this.#live, 'get', target, source, options))
  }

  /**
   * Queues a put on a stream, and after it a signal to the same PE (`nvshmemx_<type>_put_signal_on_stream`): who sees
   * the signal sees the elements.
   */
  putSignalOnStream(target: SymmetricBuffer, source: LocalMemory, options: PutSignalOptions): Promise<void> {
    return this.#checked('putSignalOnStream', () => queuePutSignal(this.#live, target, source, options, false))
  }

  /** The same, completed by `quietOnStream` (`nvshmemx_<type>_put_signal_nbi_on_stream`). */
  putSignalNonBlockingOnStream(target: SymmetricBuffer, source: LocalMemory, options: PutSignalOptions): Promise<void> {
    return this.#checked('putSignalNonBlockingOnStream', () =>
      queuePutSignal(this.#live, target, source, options, true),
    )
  }

  /**
   * Tells NVSHMEM of local memory, which it needs for the local side of transfers to other machines
   * (`nvshmemx_buffer_register`).
   *
   * @throws StatusError when it overlaps memory that is registered already.
   */
  register(memory: MemoryLike): Promise<Registration> {
    return this.#checked('register', () => register(this.#live, memory))
  }

  /** Takes all registered local memory back (`nvshmemx_buffer_unregister_all`). */
  unregisterAll(): Promise<void> {
    return this.#checked('unregisterAll', () => unregisterAll(this.#live))
  }

  /**
   * Maps memory of this process into the symmetric heap (`nvshmemx_buffer_register_symmetric`): all PEs do, with the same
   * size. It has to be a whole mapping of physical memory, such as a `MappedRange` of `@shoal/driver`. Disposing of the
   * buffer gives the mapping back, and leaves the memory.
   *
   * @throws StatusError when NVSHMEM cannot use the memory.
   */
  registerSymmetric<D extends DType>(
    memory: MemoryLike,
    dtype: D,
    wait: WaitOptions = {},
  ): Promise<SymmetricBuffer<D>> {
    return this.#checked('registerSymmetric', () => registerSymmetric(this.#live, memory, dtype, wait))
  }

  /**
   * Waits until all PEs have come here, and all transfers of all of them have arrived (`nvshmem_barrier` of the world,
   * which is `nvshmem_barrier_all` with a status).
   *
   * @throws TimeoutError, AbortedError when it is given up; see {@link SessionStuckError} for what follows.
   */
  async barrierAll(wait?: WaitOptions): Promise<void> {
    const held = [...this.#untilQuiet]
    await this.#checked('barrierAll', () => synchronize(this.#live, 'barrierAll', wait))
    for (const operand of held) this.#untilQuiet.delete(operand)
  }

  /** Like {@link barrierAll}, and blocks the thread until the other PEs have come. @throws SessionBusyError */
  barrierAllSync(): void {
    this.#live.requireOpen('Session.barrierAllSync')
    synchronizeSync(this.#live, 'barrierAll')
    this.#untilQuiet.clear()
  }

  /** The barrier as work of a stream (`nvshmemx_barrier_on_stream` of the world). */
  barrierAllOnStream(options: OnStreamOptions): Promise<void> {
    return queueSynchronization(this.#live, 'barrierAll', options)
  }

  /** Waits until all PEs have come here, and for nothing else (`nvshmem_team_sync` of the world). */
  syncAll(wait?: WaitOptions): Promise<void> {
    return this.#checked('syncAll', () => synchronize(this.#live, 'syncAll', wait))
  }

  /** Like {@link syncAll}, and blocks the thread. @throws SessionBusyError */
  syncAllSync(): void {
    this.#live.requireOpen('Session.syncAllSync')
    synchronizeSync(this.#live, 'syncAll')
  }

  /** The same as work of a stream (`nvshmemx_team_sync_on_stream` of the world). */
  syncAllOnStream(options: OnStreamOptions): Promise<void> {
    return queueSynchronization(this.#live, 'syncAll', options)
  }

  /** Waits until the transfers and atomics that this PE has started are complete (`nvshmem_quiet`). */
  async quiet(wait?: WaitOptions): Promise<void> {
    const held = [...this.#untilQuiet]
    await this.#checked('quiet', () => synchronize(this.#live, 'quiet', wait))
    for (const operand of held) this.#untilQuiet.delete(operand)
  }

  /** Like {@link quiet}, and blocks the thread. @throws SessionBusyError */
  quietSync(): void {
    this.#live.requireOpen('Session.quietSync')
    synchronizeSync(this.#live, 'quiet')
    this.#untilQuiet.clear()
  }

  /** The same as work of a stream (`nvshmemx_quiet_on_stream`). */
  quietOnStream(options: OnStreamOptions): Promise<void> {
    return queueSynchronization(this.#live, 'quiet', options)
  }

  /** What this PE puts to another before arrives there before what it puts after (`nvshmem_fence`). */
  fence(wait?: WaitOptions): Promise<void> {
    return this.#checked('fence', () => synchronize(this.#live, 'fence', wait))
  }

  /** Like {@link fence}, and blocks the thread. @throws SessionBusyError */
  fenceSync(): void {
    this.#live.requireOpen('Session.fenceSync')
    synchronizeSync(this.#live, 'fence')
  }

  /** An id for {@link createTeam}, which one PE makes for all of a new team (`nvshmemx_team_get_uniqueid`). */
  teamUniqueId(): Promise<bigint> {
    return this.#checked('teamUniqueId', () => teamUniqueId(this.#live))
  }

  /** Makes a team of any PEs, which all call it with the same id and size (`nvshmemx_team_init`). */
  createTeam(options: CreateTeamOptions): Promise<Team> {
    return this.#checked('createTeam', async () => new Team(await createTeam(this.#live, options)))
  }

  /**
   * Ends the processes of all PEs, this one included, with a status (`nvshmem_global_exit`); no `exit` handler runs. That
   * takes a bootstrap that can end processes, as MPI's does.
   *
   * @throws FeatureNotSupportedError when NVSHMEM comes back, as 3.4.5 does with a start by unique id: then the session is
   * abandoned, and it is for the launcher to end the others.
   * @throws SessionBusyError when a call is under way.
   */
  globalExit(status: number): never {
    const api = 'Session.globalExit'
    this.#live.requireOpen(api)
    requireWhole(status, 'status', 0, 255, api)
    this.#queue.runSync(api, () => nvshmem_global_exit(status))
    this.abandon()
    throw new FeatureNotSupportedError({
      library: 'NVSHMEM',
      feature: 'the end of all processes (nvshmem_global_exit)',
      reason: 'the bootstrap that brought the PEs together has no way to end them',
    })
  }

  /**
   * Ends NVSHMEM in this process (`nvshmemx_hostlib_finalize`): all PEs do, and wait for each other. What is left of
   * buffers and teams goes with it. Idempotent.
   *
   * @throws TimeoutError, AbortedError when it is given up, SessionStuckError when an earlier call was: then only
   * `abandon()` is left.
   */
  finalize(wait?: WaitOptions): Promise<void> {
    this.#ending ??= this.#finalize(wait)
    return this.#ending
  }

  /**
   * Gives the session up without the other PEs: the way out when one of them is lost. Every promise that is pending
   * rejects with DisposedError. NVSHMEM itself is left as it is, which may be inside of a call, and its memory stays
   * until the process ends; the thread does not keep the process from ending. Idempotent.
   */
  abandon(): void {
    if (this.#ended !== undefined) return
    this.#end('was abandoned')
    this.#queue.giveUpAll((operation) => new DisposedError({ object: 'The NVSHMEM session', operation }))
    this.#queue.abandon('The NVSHMEM session')
    this.#ending = Promise.resolve()
    if (current !== undefined) current = { ...current, what: 'was abandoned' }
  }

  /** The same as `finalize()`. */
  dispose(wait?: WaitOptions): Promise<void> {
    return this.finalize(wait)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.finalize()
  }

  get [Symbol.toStringTag](): string {
    return 'Session'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const state = this.#ended === undefined ? '' : ` (${this.#ended})`
    return `Session of PE ${this.pe} of ${this.peCount} on device ${this.device}${state}`
  }

  #makeLive(): LiveSession {
    return {
      queue: this.#queue,
      device: this.device,
      context: this.#context.handle,
      pe: this.pe,
      peCount: this.peCount,
      room: new HeapRoom(),
      recent: noRecentTransfers(),
      holdUntilQuiet: (...operands) => {
        for (const operand of operands) this.#untilQuiet.add(operand)
      },
      isOver: () => this.#ended !== undefined,
      requireOpen: (operation) => {
        if (this.#ended !== undefined) throw new DisposedError({ object: 'The NVSHMEM session', operation })
      },
    }
  }

  /** What an operation does once the session is known to be open; what it throws becomes a rejection. */
  #checked<T>(operation: string, run: () => Promise<T>): Promise<T> {
    try {
      this.#live.requireOpen(`Session.${operation}`)
      return run()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #end(how: string): void {
    this.#ended = how
    forgetLeak(this)
    this.#untilQuiet.clear()
  }

  #recordEnd(): void {
    this.#kernels?.recordUnload()
    nvshmemx_hostlib_finalize()
  }

  async #finalize(wait: WaitOptions = {}): Promise<void> {
    const ended = this.#queue.run('Session.finalize', () => this.#recordEnd(), { wait, keep: this.#memory })
    // From here on nothing may follow; what was called before comes before.
    this.#end('finalized')
    try {
      await ended
    } catch (error) {
      this.#queue.close('The NVSHMEM session')
      if (current !== undefined) current = { ...current, what: 'did not finalize' }
      throw error
    }
    this.#queue.close('The NVSHMEM session')
    current = undefined
    await this.#kernels?.release(this.#context.handle)
    await releasePrimaryContexts([this.#context])
  }
}

function refuseSecond(api: string): void {
  if (current !== undefined) {
    throw new SessionExistsError(
      `${api}: an NVSHMEM session of this process ${current.what}; there is one in a process at a time, and one that has not ended as it should is the last`,
    )
  }
  if (isRunning()) {
    throw new SessionExistsError(`${api}: NVSHMEM runs in this process already, started by another thread or library`)
  }
  if (wasStarted) {
    throw new SessionExistsError(
      `${api}: this process had a session before, and NVSHMEM cannot be started again in it. Start a new process for another session.`,
    )
  }
}

/** NVSHMEM ignores what it is told when it was bootstrapped before. */
function requirePlace({ peers }: CheckedInit, { pe, peCount }: Started): void {
  if (peers.kind !== 'id' || (pe === peers.rank && peCount === peers.worldSize)) return
  throw nvshmemError(
    7,
    'nvshmemx_hostlib_init_attr',
    `NVSHMEM says that this is PE ${pe} of ${peCount}, not ${peers.rank} of ${peers.worldSize}`,
  )
}

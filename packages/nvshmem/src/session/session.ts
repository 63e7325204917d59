import { type PrimaryContext, retainPrimaryContexts } from '@shoal/cuda-base/basics'
import { nvshmem_global_exit } from '@shoal/nvshmem-sys'
import { FeatureNotSupportedError } from '@shoal/types'
import { AtomicOperations } from '../atomics/atomics.js'
import { requireWhole } from '../checks.js'
import { DeviceCode } from '../deviceCode/deviceCode.js'
import { nvshmemError } from '../errors.js'
import { Signals } from '../signals/signals.js'
import { Team } from '../teams/team.js'
import type { WaitOptions } from '../queue/callQueue.js'
import { type CheckedInit, checkInit, type InitOptions, type ThreadLevel, threadLevels } from './initOptions.js'
import { SessionLife } from './sessionLifetime.js'
import { claimSession, recordStart, recordState, releaseSession } from './processSession.js'
import { SessionOperations } from './sessionOperations.js'
import { loadLibraries, predefinedTeams, type Started, start } from './start.js'

/**
 * This process's part of an NVSHMEM job: one PE on one device. One process is one PE, and has one session at a time.
 *
 * NVSHMEM takes one call at a time, and most of them wait for other PEs. So each call waits for its turn on a thread that
 * belongs to the session, in the order in which they were made, and gives a promise; calls that only start or queue
 * something run at once where nothing is waiting. The `…Sync` twins run on the JavaScript thread and block it.
 *
 * Operands are checked before the call: what is wrong rejects the promise with TypeError, RangeError or DisposedError.
 */
export class Session extends SessionOperations {
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
  readonly #life: SessionLife

  private constructor(started: Started, context: PrimaryContext) {
    const life = new SessionLife(started, context)
    const { live } = life
    super(live)
    this.#life = life
    this.pe = live.pe
    this.peCount = live.peCount
    this.device = live.device
    this.threadLevel = threadLevels[started.threadLevel] ?? 'single'
    const [world, shared, node, samePeIndex] = predefinedTeams.map(({ name, handle }, index) => {
      const place = started.places[index] as { readonly pe: number; readonly peCount: number }
      return new Team({ live, handle, name, ...place, isPredefined: true })
    }) as [Team, Team, Team, Team]
    this.world = world
    this.shared = shared
    this.node = node
    this.samePeIndex = samePeIndex
    this.atomics = new AtomicOperations(live, started.atomics)
    this.signals = new Signals(live)
    this.deviceCode = new DeviceCode(live)
    life.belongTo(this)
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
    claimSession(api)
    let context: PrimaryContext | undefined
    try {
      context = (await retainPrimaryContexts([checked.ordinal], api))[0] as PrimaryContext
    } catch (error) {
      releaseSession()
      throw error
    }
    recordStart()
    try {
      const started = await start(checked, context, api)
      requirePlace(checked, started)
      recordState('is running')
      return new Session(started, context)
    } catch (error) {
      // The thread may still be inside of NVSHMEM: the context stays, and no second start is safe.
      recordState('did not start')
      throw error
    }
  }

  /** Whether `finalize()` or `abandon()` was called. */
  get disposed(): boolean {
    return this.#life.ended !== undefined
  }

  /** The call that is under way, undefined when there is none. */
  get waitingFor(): string | undefined {
    return this._live.queue.underWay
  }

  /** The call that was given up and has not returned: until it does, the session is of no use. */
  get stuckIn(): string | undefined {
    return this._live.queue.stuckIn
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
    this._live.requireOpen(api)
    requireWhole(status, 'status', 0, 255, api)
    this._live.queue.runNow(api, () => nvshmem_global_exit(status))
    this.abandon()
    throw new FeatureNotSupportedError({
      library: 'NVSHMEM',
      api: 'the end of all processes (nvshmem_global_exit)',
      reason: 'the bootstrap that brought the PEs together has no way to end them',
    })
  }

  /**
   * Ends NVSHMEM in this process (`nvshmemx_hostlib_finalize`): all PEs do, and wait for each other. What is left of
   * buffers and teams goes with it. Idempotent.
   *
   * @throws TimeoutError, AbortedError when it is given up. What rejects before NVSHMEM is called leaves the session as it
   * is: TypeError and RangeError for a wrong argument; SessionStuckError when an earlier call was given up, AbortedError once
   * the signal of the session has fired: then only `abandon()` is left.
   */
  finalize(wait?: WaitOptions): Promise<void> {
    return this.#life.finalize(wait)
  }

  /**
   * Gives the session up without the other PEs: the way out when one of them is lost. Every promise that is pending
   * rejects with DisposedError. NVSHMEM itself is left as it is, which may be inside of a call, and its memory stays
   * until the process ends; the thread does not keep the process from ending. Idempotent.
   */
  abandon(): void {
    this.#life.abandon()
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
    const { ended } = this.#life
    const state = ended === undefined ? '' : ` (${ended})`
    return `Session of PE ${this.pe} of ${this.peCount} on device ${this.device}${state}`
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

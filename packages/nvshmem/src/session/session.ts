import { type PrimaryContext, retainPrimaryContexts } from '@shoal/driver/basics'
import { nvshmem_global_exit } from '@shoal/nvshmem-sys'
import {
  FeatureNotSupportedError,
  inspectKey,
  inspectLine,
  requireInteger,
  requireMade,
  type WaitOptions,
} from '@shoal/types'
import { AtomicOperations } from '../atomics/atomics.js'
import { DeviceCode } from '../deviceCode/deviceCode.js'
import { nvshmemError } from '../errors.js'
import { Signals } from '../signals/signals.js'
import { Team } from '../teams/team.js'
import { type CheckedInit, checkInit, type InitOptions, type ThreadLevel, threadLevels } from './initOptions.js'
import { claimSession, recordStart, recordState, releaseSession } from './processSession.js'
import { SessionLifetime } from './sessionLifetime.js'
import { SessionOperations } from './sessionOperations.js'
import { peersOf } from './shoalRun.js'
import { loadLibraries, predefinedTeams, type Started, start } from './start.js'

/**
 * This process's session in an NVSHMEM job: one PE on one device.
 *
 * A process is one PE, and has one session at a time.
 *
 * NVSHMEM takes one call at a time, and most calls wait for other PEs. So calls run in order on a thread of the session
 * and return promises. Calls that only start or queue work run immediately if nothing is waiting. The `…Sync` twins run
 * on the JavaScript thread and block it.
 *
 * Operands are checked before the call: wrong operands reject the promise with TypeError, RangeError or DisposedError.
 * Each method rejects with SessionStuckError while a cancelled call has not returned, and with AbortedError after the
 * signal of the session has fired. Methods with the options `timeout` and `signal` also reject with TimeoutError and
 * AbortedError.
 *
 * @example
 * ```ts
 * await using session = await Session.init({ device: 0, rank, worldSize, id })
 * await using buffer = await session.allocate('f32', 1024) // on every PE
 * await session.put(buffer, new Float32Array(1024), { pe: (session.pe + 1) % session.peCount })
 * await session.barrierAll()
 * ```
 */
export class Session extends SessionOperations {
  /** This process's PE (`nvshmem_my_pe`). */
  readonly pe: number
  /** Number of PEs (`nvshmem_n_pes`). */
  readonly peCount: number
  /** Ordinal of the device of this PE. */
  readonly deviceOrdinal: number
  /** Which threads of this process may call NVSHMEM (`nvshmem_query_thread`). */
  readonly threadLevel: ThreadLevel
  /** All PEs (`NVSHMEM_TEAM_WORLD`). */
  readonly world: Team
  /** The PEs whose memory this PE can address directly (`NVSHMEM_TEAM_SHARED`). */
  readonly shared: Team
  /** The PEs of this machine (`NVSHMEMX_TEAM_NODE`). */
  readonly node: Team
  /** One PE per machine, with the same number in `node` as this PE (`NVSHMEMX_TEAM_SAME_MYPE_NODE`). */
  readonly samePeIndex: Team
  /** Atomic operations on single elements. */
  readonly atomics: AtomicOperations
  /** Signals between streams of PEs. */
  readonly signals: Signals
  /** Support for kernels that call NVSHMEM themselves. */
  readonly deviceCode: DeviceCode
  readonly #lifetime: SessionLifetime

  private constructor(started: Started, context: PrimaryContext) {
    requireMade(started?.places, 'Session', 'Session.init', 'object')
    const lifetime = new SessionLifetime(started, context)
    const { live } = lifetime
    super(live)
    this.#lifetime = lifetime
    this.pe = live.pe
    this.peCount = live.peCount
    this.deviceOrdinal = live.deviceOrdinal
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
    lifetime.watch(this)
  }

  /**
   * Starts NVSHMEM in this process and waits for the other PEs (`nvshmemx_hostlib_init_attr`).
   *
   * The PEs find each other through an id that one process makes and all processes receive (`rank`, `worldSize`, `id`),
   * or through their launcher (`launcher`). Without these options, environment variables decide: variables that begin
   * with `NVSHMEM_BOOTSTRAP`, or the variables of `shoal run`. The start runs on the thread of the session.
   *
   * @throws SessionExistsError if NVSHMEM is or was running in this process, because a process can start NVSHMEM only
   * once.
   * @throws TypeError, RangeError for wrong options, before any native call.
   * @throws TimeoutError, AbortedError if the start is cancelled; this process cannot start NVSHMEM afterwards.
   * @throws LibraryNotFoundError if the driver or NVSHMEM is missing, StatusError if one of them returns an error.
   */
  static async init(options: InitOptions): Promise<Session> {
    const api = 'Session.init'
    const given = checkInit(options, api)
    loadLibraries()
    claimSession(api)
    let checked: CheckedInit
    let context: PrimaryContext | undefined
    try {
      checked = { ...given, peers: await peersOf(given, api) }
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
      // The thread may still be inside NVSHMEM: the context stays, and a second start is not safe.
      recordState('did not start')
      throw error
    }
  }

  /** Whether `finalize()` or `abandon()` was called. */
  get disposed(): boolean {
    return this.#lifetime.ended !== undefined
  }

  /** The call in progress; undefined if there is none. */
  get waitingFor(): string | undefined {
    return this._live.queue.underWay
  }

  /** The cancelled call that has not returned; until it does, other calls reject. */
  get stuckIn(): string | undefined {
    return this._live.queue.stuckIn
  }

  /**
   * Ends the processes of all PEs with a status, including this one (`nvshmem_global_exit`).
   *
   * No `exit` handler runs. Requires a start through a launcher that can end processes, such as MPI.
   *
   * @throws FeatureNotSupportedError if NVSHMEM returns, as 3.4.5 does after a start by unique id. Then the session is
   * abandoned, and the launcher must end the other processes.
   * @throws BusyError when a call is in progress.
   */
  globalExit(status: number): never {
    const api = 'Session.globalExit'
    this._live.requireOpen(api)
    requireInteger(status, api, 'status', 0, 255)
    this._live.queue.callSync(api, () => nvshmem_global_exit(status), true)
    this.abandon()
    throw new FeatureNotSupportedError({
      library: 'NVSHMEM',
      api: 'the end of all processes (nvshmem_global_exit)',
      reason: 'the bootstrap of this session cannot end other PEs',
    })
  }

  /**
   * Ends NVSHMEM in this process together with all other PEs (`nvshmemx_hostlib_finalize`). Idempotent.
   *
   * All PEs wait for each other. Remaining buffers and teams end too.
   *
   * @throws TimeoutError, AbortedError if the call is cancelled. Errors before NVSHMEM is called leave the session
   * unchanged: TypeError and RangeError for a wrong argument; SessionStuckError after an earlier call was cancelled;
   * AbortedError after the signal of the session has fired. In the last two cases only `abandon()` can end the session.
   */
  finalize(wait?: WaitOptions): Promise<void> {
    return this.#lifetime.finalize(wait)
  }

  /**
   * Ends the session without the other PEs, when one of them is lost. Idempotent.
   *
   * Every pending promise rejects with DisposedError, and calls that wait for their turn are not made. NVSHMEM itself
   * keeps running, possibly inside a call. Its memory stays allocated until the process ends; its thread does not keep
   * the process alive.
   */
  abandon(): void {
    this.#lifetime.abandon()
  }

  /** Like `finalize()`. */
  dispose(wait?: WaitOptions): Promise<void> {
    return this.#lifetime.finalize(wait, 'Session.dispose')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.finalize()
  }

  get [Symbol.toStringTag](): string {
    return 'Session'
  }

  /** @internal */
  override [inspectKey](): string {
    const { pe, peCount, deviceOrdinal } = this
    return inspectLine('Session', { pe, peCount, deviceOrdinal, ended: this.#lifetime.ended })
  }
}

/** Checks PE and size, because NVSHMEM ignores them if it was bootstrapped before. */
function requirePlace({ peers }: CheckedInit, { pe, peCount }: Started): void {
  if (peers.kind !== 'id' || (pe === peers.rank && peCount === peers.worldSize)) return
  throw nvshmemError(
    7,
    'nvshmemx_hostlib_init_attr',
    `NVSHMEM says that this is PE ${pe} of ${peCount}, not ${peers.rank} of ${peers.worldSize}`,
  )
}

import { forgetLeak, watchForLeak } from '@shoal/driver/basics'
import { NativeMemory } from '@shoal/ffi'
import {
  NVSHMEM_TEAM_CONFIG_INITIALIZER,
  nvshmem_team_config_t,
  nvshmem_team_destroy,
  nvshmem_team_get_config,
  type nvshmem_team_t,
  nvshmem_team_translate_pe,
} from '@shoal/nvshmem-sys'
import {
  DisposedError,
  inspectKey,
  inspectLine,
  loadedFrom,
  otherCopy,
  PublicObject,
  requireInteger,
  requireMade,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import {
  type CollectiveOptions,
  type DataCollective,
  dataCollective,
  dataCollectiveSync,
  queueDataCollective,
  type RootOptions,
  type StreamCollectiveOptions,
} from '../collectives/dataCollectives.js'
import {
  queueReduction,
  type Reduction,
  type ReductionOptions,
  reduction,
  reductionSync,
} from '../collectives/reductions.js'
import {
  type OnStreamOptions,
  queueSynchronization,
  type StreamSynchronization,
  synchronize,
  synchronizeSync,
} from '../collectives/synchronization.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { joinEnd } from '../queue/joinEnd.js'
import type { LiveSession } from '../queue/liveSession.js'
import { type Parent, type Split2dOptions, type SplitStridedOptions, split2d, splitStrided } from './split.js'
import type { SessionTeam, TeamParts } from './teamParts.js'

/** The two teams of this PE after a 2-D split. */
export interface Split2d {
  /** The PEs of this PE's row, with consecutive numbers; undefined if this PE is in no row. */
  readonly x: Team | undefined
  /** The PEs of this PE's column; undefined if this PE is in no column. */
  readonly y: Team | undefined
}

/**
 * A group of PEs for synchronization and collectives (`nvshmem_team_t`).
 *
 * Every PE of the team makes the same calls in the same order. Collectives work on symmetric memory.
 *
 * Methods that return a promise wait for the other PEs, in their turn among the calls of the session. The `…Sync` twins
 * block the thread. `…OnStream` methods only queue work.
 *
 * All methods throw TypeError and RangeError for wrong arguments, DisposedError, StatusError, SessionStuckError.
 * Methods that return a promise also throw TimeoutError and AbortedError.
 *
 * @example
 * ```ts
 * await using even = await session.world.splitStrided({ start: 0, stride: 2, size: session.peCount / 2 })
 * // PEs with an odd number are not in it and got undefined.
 * await even?.reduce(total, part, { op: 'sum' })
 * ```
 */
export class Team extends PublicObject implements SessionTeam {
  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }
  /** Name for messages: `world`, `shared`, … */
  readonly name: string
  /** This process's number in the team. */
  readonly pe: number
  /** Number of PEs in the team. */
  readonly peCount: number
  readonly #live: LiveSession
  readonly #handle: nvshmem_team_t
  readonly #isPredefined: boolean
  #ending: Promise<void> | undefined

  /** @internal */
  constructor(parts: TeamParts) {
    requireMade(parts?.live, 'Team', 'Session.createTeam or Session.world', 'object')
    super()
    const { live, handle, name, pe, peCount, isPredefined } = parts
    this.#live = live
    this.#handle = handle
    this.#isPredefined = isPredefined
    this.name = name
    this.pe = pe
    this.peCount = peCount
    if (isPredefined) return
    const { isOver } = live
    watchForLeak(
      this,
      `Team ${name} of PE ${pe}`,
      // The collector frees nothing: a collector that waits for another process would block the program forever.
      () => (isOver() ? undefined : 'it exists until the session ends, since destroying it waits for the other PEs'),
    )
  }

  /** @internal */
  static _is(value: unknown): value is Team {
    return typeof value === 'object' && value !== null && #handle in value
  }

  /** The `nvshmem_team_t`, for raw functions of `@shoal/nvshmem-sys`. @throws DisposedError */
  get handle(): nvshmem_team_t {
    return this.#use('Team.handle')
  }

  /** Whether `dispose()` was called. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /** @internal The handle, checked for a call of this session. */
  _handleIn(live: LiveSession, api: string): nvshmem_team_t {
    if (live !== this.#live) throw new TypeError(`${api}: the team belongs to another session`)
    return this.#use(api)
  }

  /**
   * Returns the number of PE `pe` of this team in the team `into` (`nvshmem_team_translate_pe`).
   *
   * Returns undefined if the PE is not in that team.
   */
  async translate(pe: number, into: Team): Promise<number | undefined> {
    const api = 'Team.translate'
    const handle = this.#use(api)
    requireInteger(pe, api, 'pe', 0, this.peCount - 1)
    const target = teamHandle(into, this.#live, api, 'into')
    const found = await this.#live.queue.ask(api, () => nvshmem_team_translate_pe(handle, pe, target))
    return typeof found === 'number' && found >= 0 ? found : undefined
  }

  /** Returns the team's configuration (`nvshmem_team_get_config`): its number of contexts, -1 if unset. */
  async config(): Promise<{ readonly contexts: number }> {
    const api = 'Team.config'
    const handle = this.#use(api)
    const memory = NativeMemory.allocate(nvshmem_team_config_t.size)
    try {
      nvshmem_team_config_t.write(memory, NVSHMEM_TEAM_CONFIG_INITIALIZER)
      await this.#live.queue.ask(api, () => nvshmem_team_get_config(handle, memory))
      return { contexts: nvshmem_team_config_t.read(memory).num_contexts }
    } finally {
      this.#live.queue.free(memory)
    }
  }

  /**
   * Makes a team of the `size` PEs `start`, `start + stride`, … of this team (`nvshmem_team_split_strided`).
   *
   * All PEs of this team call it; PEs outside the new team get undefined.
   *
   * @throws RangeError if a PE is not in this team, StatusError if NVSHMEM returns an error (such as for more teams
   * than `NVSHMEM_MAX_TEAMS`).
   */
  async splitStrided(options: SplitStridedOptions): Promise<Team | undefined> {
    const parts = await splitStrided(this.#live, this.#asParent('Team.splitStrided'), options)
    return parts === undefined ? undefined : new Team(parts)
  }

  /**
   * Makes a team of each row and each column of this team (`nvshmem_team_split_2d`).
   *
   * Rows have `xRange` PEs. All PEs of this team call it and get their own row and column.
   */
  async split2d(options: Split2dOptions): Promise<Split2d> {
    const { x, y } = await split2d(this.#live, this.#asParent('Team.split2d'), options)
    return { x: x === undefined ? undefined : new Team(x), y: y === undefined ? undefined : new Team(y) }
  }

  /** Waits until all PEs of the team have called it and this PE's transfers are complete (`nvshmem_barrier`). */
  async barrier(wait?: WaitOptions): Promise<void> {
    const api = 'Team.barrier'
    await synchronize(this.#live, 'barrier', this.#use(api), api, wait)
  }

  /** Like {@link barrier}, but blocks the thread until the other PEs have called it. @throws BusyError */
  barrierSync(): void {
    const api = 'Team.barrierSync'
    synchronizeSync(this.#live, 'barrier', this.#use(api), api)
  }

  /** Queues {@link barrier} on a stream (`nvshmemx_barrier_on_stream`). */
  barrierOnStream(options: OnStreamOptions): Promise<void> {
    return this.#queue('barrier', 'Team.barrierOnStream', options)
  }

  /** Waits until all PEs of the team have called it, but not for transfers (`nvshmem_team_sync`). */
  async sync(wait?: WaitOptions): Promise<void> {
    const api = 'Team.sync'
    await synchronize(this.#live, 'sync', this.#use(api), api, wait)
  }

  /** Like {@link sync}, but blocks the thread until the other PEs have called it. @throws BusyError */
  syncSync(): void {
    const api = 'Team.syncSync'
    synchronizeSync(this.#live, 'sync', this.#use(api), api)
  }

  /** Queues {@link sync} on a stream (`nvshmemx_team_sync_on_stream`). */
  syncOnStream(options: OnStreamOptions): Promise<void> {
    return this.#queue('sync', 'Team.syncOnStream', options)
  }

  /**
   * Copies `source` of PE `root` to `target` of every PE (`nvshmem_<type>_broadcast`).
   *
   * `target` and `source` may be the same buffer.
   */
  broadcast(target: SymmetricBuffer, source: SymmetricBuffer, options: CollectiveOptions & RootOptions): Promise<void> {
    return this.#move('broadcast', target, source, options)
  }

  /** Like {@link broadcast}, but blocks the thread until the other PEs have called it. @throws BusyError */
  broadcastSync(target: SymmetricBuffer, source: SymmetricBuffer, options: CollectiveOptions & RootOptions): void {
    this.#moveSync('broadcast', target, source, options)
  }

  /** Queues {@link broadcast} on a stream (`nvshmemx_<type>_broadcast_on_stream`). */
  broadcastOnStream(
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: StreamCollectiveOptions & RootOptions,
  ): Promise<void> {
    return this.#queueMove('broadcast', target, source, options)
  }

  /**
   * Concatenates the `source` of all PEs in `target` of every PE (`nvshmem_<type>_fcollect`).
   *
   * `count` is the number of elements per PE.
   */
  fcollect(target: SymmetricBuffer, source: SymmetricBuffer, options: CollectiveOptions = {}): Promise<void> {
    return this.#move('fcollect', target, source, options)
  }

  /** Like {@link fcollect}, but blocks the thread until the other PEs have called it. @throws BusyError */
  fcollectSync(target: SymmetricBuffer, source: SymmetricBuffer, options: CollectiveOptions = {}): void {
    this.#moveSync('fcollect', target, source, options)
  }

  /** Queues {@link fcollect} on a stream (`nvshmemx_<type>_fcollect_on_stream`). */
  fcollectOnStream(target: SymmetricBuffer, source: SymmetricBuffer, options: StreamCollectiveOptions): Promise<void> {
    return this.#queueMove('fcollect', target, source, options)
  }

  /**
   * Sends part i of `source` to PE i (`nvshmem_<type>_alltoall`).
   *
   * On PE i, this part becomes the part of this PE in `target`.
   *
   * `count` is the number of elements per part.
   */
  allToAll(target: SymmetricBuffer, source: SymmetricBuffer, options: CollectiveOptions = {}): Promise<void> {
    return this.#move('allToAll', target, source, options)
  }

  /** Like {@link allToAll}, but blocks the thread until the other PEs have called it. @throws BusyError */
  allToAllSync(target: SymmetricBuffer, source: SymmetricBuffer, options: CollectiveOptions = {}): void {
    this.#moveSync('allToAll', target, source, options)
  }

  /** Queues {@link allToAll} on a stream (`nvshmemx_<type>_alltoall_on_stream`). */
  allToAllOnStream(target: SymmetricBuffer, source: SymmetricBuffer, options: StreamCollectiveOptions): Promise<void> {
    return this.#queueMove('allToAll', target, source, options)
  }

  /**
   * Reduces `source` over all PEs to `target` of every PE (`nvshmem_<type>_<op>_reduce`).
   *
   * `target` and `source` may be the same buffer.
   */
  reduce(
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: ReductionOptions & WaitOptions = {},
  ): Promise<void> {
    return this.#reduce('reduce', target, source, options)
  }

  /** Like {@link reduce}, but blocks the thread until the other PEs have called it. @throws BusyError */
  reduceSync(target: SymmetricBuffer, source: SymmetricBuffer, options: ReductionOptions = {}): void {
    this.#reduceSync('reduce', target, source, options)
  }

  /** Queues {@link reduce} on a stream (`nvshmemx_<type>_<op>_reduce_on_stream`). */
  reduceOnStream(
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: ReductionOptions & OnStreamOptions,
  ): Promise<void> {
    return this.#queueReduction('reduce', target, source, options)
  }

  /**
   * Reduces `source` over all PEs; PE i gets part i in `target` (`nvshmem_<type>_<op>_reducescatter`).
   *
   * `count` is the number of elements per part.
   *
   * @throws RangeError also if the parts exceed the usable scratch memory of the team: half of
   * `NVSHMEM_REDUCE_SCRATCH_SIZE`, 256 KiB by default.
   */
  reduceScatter(
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: ReductionOptions & WaitOptions = {},
  ): Promise<void> {
    return this.#reduce('reduceScatter', target, source, options)
  }

  /** Like {@link reduceScatter}, but blocks the thread until the other PEs have called it. @throws BusyError */
  reduceScatterSync(target: SymmetricBuffer, source: SymmetricBuffer, options: ReductionOptions = {}): void {
    this.#reduceSync('reduceScatter', target, source, options)
  }

  /** Queues {@link reduceScatter} on a stream (`nvshmemx_<type>_<op>_reducescatter_on_stream`). */
  reduceScatterOnStream(
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: ReductionOptions & OnStreamOptions,
  ): Promise<void> {
    return this.#queueReduction('reduceScatter', target, source, options)
  }

  /**
   * Destroys the team together with its other PEs (`nvshmem_team_destroy`), after earlier calls. Idempotent.
   *
   * @throws TypeError for predefined teams; SessionStuckError, TimeoutError, AbortedError.
   */
  dispose(wait?: WaitOptions): Promise<void> {
    if (this.#isPredefined) {
      return Promise.reject(
        new TypeError(`Team.dispose: the team ${this.name} is NVSHMEM's own and lives as long as the session`),
      )
    }
    if (this.#ending !== undefined) return joinEnd(this.#ending, wait, 'Team.dispose')
    const refusal = this.#live.isOver() ? undefined : this.#live.queue.refusal('Team.dispose', wait)
    if (refusal !== undefined) return Promise.reject(refusal)
    this.#ending = this.#destroy(wait)
    return this.#ending
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  get [Symbol.toStringTag](): string {
    return 'Team'
  }

  /** @internal */
  override [inspectKey](): string {
    const { name, pe, peCount, disposed } = this
    return inspectLine('Team', { name, pe, peCount, disposed: disposed || undefined })
  }

  async #destroy(wait: WaitOptions | undefined): Promise<void> {
    forgetLeak(this)
    if (this.#live.isOver()) return // ended with the session
    await this.#live.queue.run('Team.dispose', () => nvshmem_team_destroy(this.#handle), { wait })
  }

  #use(operation: string): nvshmem_team_t {
    if (this.#ending !== undefined) throw new DisposedError({ object: `Team ${this.name}`, operation })
    this.#live.requireOpen(operation)
    return this.#handle
  }

  #asParent(api: string): Parent {
    return { handle: this.#use(api), name: this.name, peCount: this.peCount }
  }

  #queue(kind: StreamSynchronization, api: string, options: OnStreamOptions): Promise<void> {
    try {
      return queueSynchronization(this.#live, kind, this.#use(api), api, options, this)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #move(
    kind: DataCollective,
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: CollectiveOptions & Partial<RootOptions>,
  ): Promise<void> {
    const handle = this.#use(`Team.${kind}`)
    await dataCollective({ live: this.#live, team: this, handle }, kind, target, source, options)
  }

  #moveSync(
    kind: DataCollective,
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: CollectiveOptions & Partial<RootOptions>,
  ): void {
    const handle = this.#use(`Team.${kind}Sync`)
    dataCollectiveSync({ live: this.#live, team: this, handle }, kind, target, source, options)
  }

  #queueMove(
    kind: DataCollective,
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: StreamCollectiveOptions & Partial<RootOptions>,
  ): Promise<void> {
    try {
      const handle = this.#use(`Team.${kind}OnStream`)
      return queueDataCollective({ live: this.#live, team: this, handle }, kind, target, source, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #reduce(
    kind: Reduction,
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: ReductionOptions & WaitOptions,
  ): Promise<void> {
    const handle = this.#use(`Team.${kind}`)
    await reduction({ live: this.#live, team: this, handle }, kind, target, source, options)
  }

  #reduceSync(kind: Reduction, target: SymmetricBuffer, source: SymmetricBuffer, options: ReductionOptions): void {
    const handle = this.#use(`Team.${kind}Sync`)
    reductionSync({ live: this.#live, team: this, handle }, kind, target, source, options)
  }

  #queueReduction(
    kind: Reduction,
    target: SymmetricBuffer,
    source: SymmetricBuffer,
    options: ReductionOptions & OnStreamOptions,
  ): Promise<void> {
    try {
      const handle = this.#use(`Team.${kind}OnStream`)
      return queueReduction({ live: this.#live, team: this, handle }, kind, target, source, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

/** Returns the handle of a team argument. */
export function teamHandle(team: unknown, live: LiveSession, api: string, parameter: string): nvshmem_team_t {
  if (!Team._is(team)) throw otherCopy(team, api, parameter, Team) ?? wrongType(api, parameter, 'a Team', team)
  return team._handleIn(live, api)
}

import { nvshmem_team_id_t } from '@shoal/nvshmem-sys'
import type { ElementType, MemoryLike, WaitOptions } from '@shoal/types'
import {
  type OnStreamOptions,
  queueSynchronization,
  type StreamSynchronization,
  type Synchronization,
  synchronize,
  synchronizeSync,
} from '../collectives/synchronization.js'
import type { HeapOptions } from '../heap/allocation.js'
import { allocateElements, type SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { whenOpen } from '../queue/liveSession.js'
import { type Registration, register, registerSymmetric, unregisterAll } from '../registration.js'
import { TransferOperations } from '../rma/transferOperations.js'
import { type CreateTeamOptions, createTeam, teamUniqueId } from '../teams/split.js'
import { Team } from '../teams/team.js'

const world = nvshmem_team_id_t.NVSHMEM_TEAM_WORLD

/** Session operations other than transfers: symmetric memory, ordering, completion and teams. */
export abstract class SessionOperations extends TransferOperations {
  /**
   * Allocates symmetric memory for `length` elements, which may be 0.
   *
   * Calls `nvshmem_malloc`, `nvshmem_align` or `nvshmem_calloc`. `dtype` may be a type of `defineStruct`, `defineArray`
   * or `defineTuple`: transfers and data collectives move such elements as bytes. Every PE calls it with the same
   * dtype, length and options, in the same order; the promise settles when all PEs have called it.
   *
   * @throws TypeError, RangeError for wrong arguments.
   * @throws StatusError (NVSHMEMX_ERROR_OUT_OF_MEMORY) if the heap is full and cannot grow
   * (`NVSHMEM_CUMEM_GRANULARITY`, `NVSHMEM_MAX_MEMORY_PER_GPU`). The package checks the room before the call, because
   * NVSHMEM would end the process.
   */
  allocate<E extends ElementType>(dtype: E, length: number, options: HeapOptions = {}): Promise<SymmetricBuffer<E>> {
    return whenOpen(this._live, 'allocate', () => allocateElements(this._live, dtype, length, options))
  }

  /**
   * Registers local memory (`nvshmemx_buffer_register`), which transfers to other machines require.
   *
   * Other PEs make no call.
   *
   * @throws StatusError if the memory overlaps registered memory.
   */
  register(memory: MemoryLike): Promise<Registration> {
    return whenOpen(this._live, 'register', () => register(this._live, memory))
  }

  /** Ends all registrations of local memory (`nvshmemx_buffer_unregister_all`). */
  unregisterAll(): Promise<void> {
    return whenOpen(this._live, 'unregisterAll', () => unregisterAll(this._live))
  }

  /**
   * Maps memory of this process into the symmetric heap (`nvshmemx_buffer_register_symmetric`).
   *
   * All PEs call it with the same size. The memory must be a whole mapping of exportable physical memory, such as a
   * `MappedRange` of `@shoal/driver` of a `PhysicalMemory` with `handleTypes: 'posix-fd'`. Disposing of the buffer ends
   * the mapping but keeps the memory.
   *
   * @throws StatusError if NVSHMEM cannot use the memory.
   */
  registerSymmetric<E extends ElementType>(
    memory: MemoryLike,
    dtype: E,
    wait: WaitOptions = {},
  ): Promise<SymmetricBuffer<E>> {
    return whenOpen(this._live, 'registerSymmetric', () => registerSymmetric(this._live, memory, dtype, wait))
  }

  /**
   * Waits until all PEs have called it and all their transfers have arrived.
   *
   * Calls `nvshmem_barrier` of the world team, which is `nvshmem_barrier_all` with a status.
   *
   * @throws TimeoutError, AbortedError if it is cancelled; see {@link SessionStuckError} for the consequences.
   */
  barrierAll(wait?: WaitOptions): Promise<void> {
    return this.#synchronize('barrier', 'barrierAll', wait)
  }

  /** Like {@link barrierAll}, but blocks the thread until the other PEs have called it. @throws BusyError */
  barrierAllSync(): void {
    this.#synchronizeSync('barrier', 'Session.barrierAllSync')
  }

  /** Queues {@link barrierAll} on a stream (`nvshmemx_barrier_on_stream` of the world). */
  barrierAllOnStream(options: OnStreamOptions): Promise<void> {
    return this.#queueSynchronization('barrier', 'Session.barrierAllOnStream', options)
  }

  /** Waits until all PEs have called it, but not for transfers (`nvshmem_team_sync` of the world). */
  syncAll(wait?: WaitOptions): Promise<void> {
    return this.#synchronize('sync', 'syncAll', wait)
  }

  /** Like {@link syncAll}, but blocks the thread. @throws BusyError */
  syncAllSync(): void {
    this.#synchronizeSync('sync', 'Session.syncAllSync')
  }

  /** Queues {@link syncAll} on a stream (`nvshmemx_team_sync_on_stream` of the world). */
  syncAllOnStream(options: OnStreamOptions): Promise<void> {
    return this.#queueSynchronization('sync', 'Session.syncAllOnStream', options)
  }

  /** Waits until the transfers and atomics of this PE are complete (`nvshmem_quiet`). */
  quiet(wait?: WaitOptions): Promise<void> {
    return this.#synchronize('quiet', 'quiet', wait)
  }

  /** Like {@link quiet}, but blocks the thread. @throws BusyError */
  quietSync(): void {
    this.#synchronizeSync('quiet', 'Session.quietSync')
  }

  /** Queues {@link quiet} on a stream (`nvshmemx_quiet_on_stream`). */
  quietOnStream(options: OnStreamOptions): Promise<void> {
    return this.#queueSynchronization('quiet', 'Session.quietOnStream', options)
  }

  /** Orders puts: earlier puts arrive at each PE before later puts (`nvshmem_fence`). Does not wait for the puts. */
  fence(wait?: WaitOptions): Promise<void> {
    return this.#synchronize('fence', 'fence', wait)
  }

  /** Like {@link fence}, but blocks the thread. @throws BusyError */
  fenceSync(): void {
    this.#synchronizeSync('fence', 'Session.fenceSync')
  }

  /**
   * Makes an id for {@link createTeam} (`nvshmemx_team_get_uniqueid`).
   *
   * One PE makes the id and sends it to all PEs of the new team.
   */
  teamUniqueId(): Promise<bigint> {
    return whenOpen(this._live, 'teamUniqueId', () => teamUniqueId(this._live))
  }

  /**
   * Makes a team of any PEs (`nvshmemx_team_init`). All these PEs call it with the same `id` and `peCount`.
   *
   * @throws StatusError
   */
  createTeam(options: CreateTeamOptions): Promise<Team> {
    return whenOpen(this._live, 'createTeam', async () => new Team(await createTeam(this._live, options)))
  }

  #synchronize(kind: Synchronization, operation: string, wait: WaitOptions | undefined): Promise<void> {
    return whenOpen(this._live, operation, () => synchronize(this._live, kind, world, `Session.${operation}`, wait))
  }

  // Called in loops, so it concatenates no name and makes no closure.

  #synchronizeSync(kind: Synchronization, api: string): void {
    this._live.requireOpen(api)
    synchronizeSync(this._live, kind, world, api)
  }

  #queueSynchronization(kind: StreamSynchronization, api: string, options: OnStreamOptions): Promise<void> {
    const live = this._live
    try {
      live.requireOpen(api)
      return queueSynchronization(live, kind, world, api, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

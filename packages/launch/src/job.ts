import { inspectLine } from '@shoal/types'

/** The launcher of a job's processes; `single` without a launcher. */
export type Launcher = 'shoal' | 'torchrun' | 'openmpi' | 'pmi' | 'slurm' | 'single'

/** Limits of a wait for other ranks. */
export interface RendezvousOptions {
  /** Limit in milliseconds, from 0 to 2^31 - 1. Default: 300,000. */
  readonly timeout?: number | undefined
  /** Ends the wait early, such as `job.lost`. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `Job.share`. */
export interface ShareOptions extends RendezvousOptions {
  /** The rank that makes the bytes; the same on all ranks. Default: 0. */
  readonly root?: number | undefined
}

/**
 * One process's membership in a job: its rank and the rendezvous of all ranks.
 *
 * At the rendezvous, ranks exchange small values that a communicator needs to start (unique ids, handles), and detect
 * lost ranks.
 *
 * Names and keys are strings of 1 to 256 bytes of UTF-8. Values have at most 1 MiB; send larger data through a
 * communicator. Every wait ends: with its result, with `RendezvousTimeoutError` that names the missing ranks, with
 * `RanksLostError` if an awaited rank has died, or with `AbortedError`.
 *
 * @example
 * await using job = await bootstrap()
 * const id = await job.share('id', () => UniqueId.create().toBytes())
 * await job.barrier('ready', { timeout: 60_000, signal: job.lost })
 */
export interface Job {
  /** Rank of this process, from 0 to `worldSize - 1`. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /**
   * Number of this process on its machine.
   *
   * This number is also the ordinal of the process's device, unless the launcher shows each process only one device
   * (see `deviceOrdinal`). Survivors keep the number, because they keep their device.
   */
  readonly localRank: number
  /** Number of the job's ranks on this machine. */
  readonly localWorldSize: number
  /** Number of this machine. */
  readonly nodeRank: number
  /** The launcher of this process. */
  readonly launcher: Launcher
  /**
   * Ordinal of the device to use; usually `localRank`.
   *
   * It is 0 if each process sees only its own device (`CUDA_VISIBLE_DEVICES` names a single one), as with
   * `shoal run --device-map each` and `srun --gpus-per-task=1`. `SHOAL_DEVICE_ORDINAL` overrides both.
   */
  readonly deviceOrdinal: number
  /**
   * Fires when a rank ends without leaving: killed, crashed or disconnected.
   *
   * A rank whose program ends normally counts as lost when another rank waits for it at the rendezvous. The reason is a
   * `RanksLostError` that names the ranks lost so far, or a `RendezvousLostError` if the connection to the rendezvous
   * has ended.
   */
  readonly lost: AbortSignal
  /** Ranks lost so far, ascending. */
  readonly lostRanks: readonly number[]

  /**
   * Shares the root's bytes with all ranks; the other ranks wait for these bytes.
   *
   * All ranks call it, in the same order for the same name.
   * @throws RendezvousError also if `make` threw on the root, with its message; the root itself rejects with the
   * original error.
   */
  share(name: string, make: () => Uint8Array | Promise<Uint8Array>, options?: ShareOptions): Promise<Uint8Array>
  /** Returns the bytes of all ranks, in the order of the ranks; lengths may differ. All ranks call it. */
  gather(name: string, bytes: Uint8Array, options?: RendezvousOptions): Promise<Uint8Array[]>
  /** Waits until all ranks have called it. */
  barrier(name: string, options?: RendezvousOptions): Promise<void>
  /** Stores a value under a key for all ranks of the job. A later call replaces the value. */
  set(key: string, bytes: Uint8Array): Promise<void>
  /**
   * Waits until a rank has set a key, and returns its value.
   *
   * If the key is not set, the promise rejects when a rank is lost or when all other ranks have left, before or after
   * the call.
   */
  get(key: string, options?: RendezvousOptions): Promise<Uint8Array>
  /**
   * Returns the job of the remaining ranks.
   *
   * Every rank calls `survivors`, except ranks that were lost or have left; the call waits for all of them. The new job
   * numbers its ranks in the old order, and starts without names and keys. The new job takes over the connection, so
   * this job cannot be used any more.
   */
  survivors(options?: RendezvousOptions): Promise<Job>
  /**
   * Leaves the job, so that the other ranks do not count this one as lost. Idempotent.
   *
   * A process that ends normally leaves automatically, but counts as lost if a rank waits for it.
   */
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Formats a job for printing. */
export function inspectJob({ rank, worldSize, localRank, deviceOrdinal, launcher }: Job): string {
  return inspectLine('Job', { rank, worldSize, localRank, deviceOrdinal, launcher })
}

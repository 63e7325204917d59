import { inspectLine } from '@shoal/types'

/** What started the processes of a job; `single` where nothing did. */
export type Launcher = 'shoal' | 'torchrun' | 'openmpi' | 'pmi' | 'slurm' | 'single'

/** How long to wait for other ranks. */
export interface RendezvousOptions {
  /** Limit in milliseconds, from 0 to 2^31 - 1. Default 300,000. */
  readonly timeout?: number | undefined
  /** Ends the wait early; `job.lost` is a good one. */
  readonly signal?: AbortSignal | undefined
}

/** Who makes what is shared. */
export interface ShareOptions extends RendezvousOptions {
  /** The rank that makes the bytes; the same on all ranks. Default 0. */
  readonly root?: number | undefined
}

/**
 * One process's part in a job: which rank it is, and a rendezvous of all ranks, where they exchange what a communicator
 * needs to start (unique ids, handles) and learn which ranks have died.
 *
 * Names and keys are strings of 1 to 256 bytes of UTF-8, values have at most 1 MiB; a rendezvous is no data path. Every
 * wait ends: with its result, with `RendezvousTimeoutError` that names who is missing, with `RanksLostError` where a
 * rank that is waited for has died, or with `AbortedError`.
 *
 * @example
 * await using job = await bootstrap()
 * const id = await job.share('id', () => UniqueId.create().toBytes())
 * await job.barrier('ready', { timeout: 60_000, signal: job.lost })
 */
export interface Job {
  /** From 0 to `worldSize - 1`. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /**
   * Number of this process on its machine, and so the ordinal of its device, unless the launcher shows each process
   * only one (see `deviceOrdinal`). Survivors keep theirs, since they keep their device.
   */
  readonly localRank: number
  /** How many ranks of the job this machine has. */
  readonly localWorldSize: number
  /** Number of this machine. */
  readonly nodeRank: number
  /** What started this process. */
  readonly launcher: Launcher
  /**
   * The device to use: `localRank`, or 0 where each process is shown its own device only, as by `shoal run --device-map
   * each` and `srun --gpus-per-task=1` (`CUDA_VISIBLE_DEVICES` names a single one). `SHOAL_DEVICE_ORDINAL` goes before
   * both.
   */
  readonly deviceOrdinal: number
  /**
   * Fires when a rank ends without having left: killed, crashed, or cut off. One whose program comes to its end counts
   * as lost once a rank waits for it in the rendezvous. Its reason is a `RanksLostError` that names those lost until
   * then, or a `RendezvousLostError` where the rendezvous itself is gone.
   */
  readonly lost: AbortSignal
  /** Ranks lost so far, ascending. */
  readonly lostRanks: readonly number[]

  /**
   * The same bytes for all: the root makes them, the others wait for them. All ranks call it, in the same order for
   * the same name.
   * @throws RendezvousError also where `make` threw on the root, with its message; the root itself gets what was
   * thrown.
   */
  share(name: string, make: () => Uint8Array | Promise<Uint8Array>, options?: ShareOptions): Promise<Uint8Array>
  /** The bytes of every rank, by rank; they need not have the same length. All ranks call it. */
  gather(name: string, bytes: Uint8Array, options?: RendezvousOptions): Promise<Uint8Array[]>
  /** Waits until all ranks have come. */
  barrier(name: string, options?: RendezvousOptions): Promise<void>
  /** Puts a value where all ranks of the job can get it. A later one replaces it. */
  set(key: string, bytes: Uint8Array): Promise<void>
  /**
   * The value of a key, once somebody has set it. Where nobody has, it rejects when a rank is lost or all others have
   * left, whether that was before the call or comes after it.
   */
  get(key: string, options?: RendezvousOptions): Promise<Uint8Array>
  /**
   * The job of those who are left: waits until every rank that is neither lost nor has left calls it, and numbers them
   * anew in the old order. Names and keys start afresh. This job can do nothing more afterwards; the new one has its
   * connection.
   */
  survivors(options?: RendezvousOptions): Promise<Job>
  /**
   * Leaves the job, without the other ranks counting this one as lost. Idempotent. A process that runs to its end
   * leaves by itself, but is lost once it is waited for.
   */
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** What is printed of a job. */
export function inspectJob({ rank, worldSize, localRank, deviceOrdinal, launcher }: Job): string {
  return inspectLine('Job', { rank, worldSize, localRank, deviceOrdinal, launcher })
}

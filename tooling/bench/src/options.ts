import type { Bar } from './bars.js'

export interface RunOptions {
  /** `gpu` refuses to run without one; `sim` tries the code on the software device. */
  readonly device: 'gpu' | 'sim'
  readonly rounds: number
  /** Number of devices, one a rank, for `nccl`, `nvshmem` and `ranks`; all of them when left out. */
  readonly devices: number | undefined
  /** Whether Python programs run beside it, where they are installed. */
  readonly peers: boolean
  /** Folder with the specs for `sys`; that of tooling/bindgen when left out. */
  readonly specFolder: string | undefined
  /** The largest message of `nccl` and `nvshmem`, in bytes. */
  readonly maximumBytes: number
  /** Which operations of `nccl`, `nvshmem`, `ranks` and `event-loop-ranks`; all of them when left out. */
  readonly only: readonly string[] | undefined
  /** How long a rank waits for its peer in `event-loop-ranks`. */
  readonly waitSeconds: number
}

/** What a benchmark gives back for the JSON file. */
export interface Outcome {
  readonly results: unknown
  readonly bars: readonly Bar[]
}

/** The command line is wrong. */
export class UsageError extends Error {}

/** There is nothing to measure on. */
export class NoDeviceError extends Error {}

import { UsageError } from '@shoal/cli/bench'
import type { Bar } from './bars.js'

export interface RunOptions {
  /** `gpu` requires a GPU; `sim` tests the code on the software device. */
  readonly device: 'gpu' | 'sim'
  readonly rounds: number
  /** Number of devices, one per rank, for `nccl`, `nvshmem` and `ranks`; defaults to all. */
  readonly devices: number | undefined
  /** Whether to measure Python's bindings, if they are installed. */
  readonly python: boolean
  /** Folder with the specs for `sys`; defaults to that of tooling/bindgen. */
  readonly specFolder: string | undefined
  /** The largest message of `nccl` and `nvshmem`, in bytes. */
  readonly maximumBytes: number
  /** The operations of `nccl` and `nvshmem` to measure; defaults to all. */
  readonly only: readonly string[] | undefined
  /** Seconds by which the other rank of `event-loop-ranks` is late. */
  readonly waitSeconds: number
}

/** The result of a benchmark, for the JSON file. */
export interface Outcome {
  readonly results: unknown
  readonly bars: readonly Bar[]
}

/** The groups that `--only` selects. @throws UsageError for an unknown word */
export function onlyOf<T extends string>(only: readonly string[] | undefined, known: readonly T[]): readonly T[] {
  const unknown = only?.find((word) => !(known as readonly string[]).includes(word))
  if (unknown !== undefined) throw new UsageError(`--only ${unknown}: there are ${known.join(', ')}`)
  return known.filter((word) => only === undefined || only.includes(word))
}

/** Thrown if there is no device to measure. */
export class NoDeviceError extends Error {}

import { UsageError } from '@shoal/cli/bench'
import type { Bar } from './bars.js'

export interface RunOptions {
  /** `gpu` refuses to run without one; `sim` tries the code on the software device. */
  readonly device: 'gpu' | 'sim'
  readonly rounds: number
  /** Number of devices, one a rank, for `nccl`, `nvshmem` and `ranks`; all of them when left out. */
  readonly devices: number | undefined
  /** Whether Python's bindings are measured, where they are installed. */
  readonly python: boolean
  /** Folder with the specs for `sys`; that of tooling/bindgen when left out. */
  readonly specFolder: string | undefined
  /** The largest message of `nccl` and `nvshmem`, in bytes. */
  readonly maximumBytes: number
  /** Which operations of `nccl` and `nvshmem`; all of them when left out. */
  readonly only: readonly string[] | undefined
  /** Seconds that the other rank of `event-loop-ranks` is late. */
  readonly waitSeconds: number
}

/** What a benchmark returns for the JSON file. */
export interface Outcome {
  readonly results: unknown
  readonly bars: readonly Bar[]
}

/** What `--only` asks for. @throws UsageError for a word that is not known */
export function onlyOf<T extends string>(only: readonly string[] | undefined, known: readonly T[]): readonly T[] {
  const unknown = only?.find((word) => !(known as readonly string[]).includes(word))
  if (unknown !== undefined) throw new UsageError(`--only ${unknown}: there are ${known.join(', ')}`)
  return known.filter((word) => only === undefined || only.includes(word))
}

/** There is no device to measure on. */
export class NoDeviceError extends Error {}

import type { RunOptions } from '../options.js'

const mebibyte = 2 ** 20

/** The sizes of everything that is measured. */
export interface Sizes {
  /** Bytes of one mapping. */
  readonly mapBytes: number
  /** Bytes of a growable buffer's step, and the number of steps. */
  readonly stepBytes: number
  readonly steps: number
  /** Bytes of one copy between host and device. */
  readonly copyBytes: number
  /** Bytes of memory passed to another process. */
  readonly exchangeBytes: number
  /** The number of ranges before the first reading, and between the first and the last reading. */
  readonly warmUpRanges: number
  readonly ranges: number
  /** The number of iterations in one loop. */
  readonly counts: {
    readonly map: number
    readonly grow: number
    readonly copy: number
    readonly exchange: number
  }
}

/** Small on the software device, which only tests the code. */
export function sizesFor(options: RunOptions): Sizes {
  if (options.device === 'sim') {
    return {
      mapBytes: 4 * mebibyte,
      stepBytes: 4 * mebibyte,
      steps: 4,
      copyBytes: 4 * mebibyte,
      exchangeBytes: 4 * mebibyte,
      warmUpRanges: 50,
      ranges: 200,
      counts: { map: 5, grow: 2, copy: 2, exchange: 3 },
    }
  }
  return {
    mapBytes: 64 * mebibyte,
    stepBytes: 64 * mebibyte,
    steps: 16,
    copyBytes: 256 * mebibyte,
    exchangeBytes: 64 * mebibyte,
    warmUpRanges: 10_000,
    ranges: 10_000,
    counts: { map: 20, grow: 2, copy: 5, exchange: 20 },
  }
}

/** Formats bytes as MiB or GiB. */
export function inWords(bytes: number): string {
  return bytes >= 2 ** 30 ? `${bytes / 2 ** 30} GiB` : `${bytes / mebibyte} MiB`
}

import type { RunOptions } from '../options.js'

const mebibyte = 2 ** 20

/** How large everything is that is measured. */
export interface Sizes {
  /** One mapping. */
  readonly mapBytes: number
  /** A step of a growable buffer, and how many there are. */
  readonly stepBytes: number
  readonly steps: number
  /** One copy between host and device. */
  readonly copyBytes: number
  /** Memory on its way to another process. */
  readonly exchangeBytes: number
  /** Ranges made and disposed of before the first reading of what is used, and between that and the last one. */
  readonly warmUpRanges: number
  readonly ranges: number
  /** How often something is done in one loop. */
  readonly counts: {
    readonly map: number
    readonly grow: number
    readonly copy: number
    readonly exchange: number
  }
}

/** Small on the software device, where the code is only tried. */
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

/** Bytes as MiB or GiB. */
export function inWords(bytes: number): string {
  return bytes >= 2 ** 30 ? `${bytes / 2 ** 30} GiB` : `${bytes / mebibyte} MiB`
}

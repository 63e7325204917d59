import type { RunOptions } from '../options.js'
import type { LoopCounts } from '../processes/comparison.js'

const mebibyte = 2 ** 20
const allSizes = [
  ...[8, 64, 1024, 8 * 1024, 64 * 1024],
  ...[mebibyte, 4 * mebibyte, 16 * mebibyte, 64 * mebibyte, 256 * mebibyte, 1024 * mebibyte],
]

export const operationNames = ['all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all'] as const
export type OperationName = (typeof operationNames)[number]

/** The largest message. It is small on the software device. */
export function largestMessage({ device, maximumBytes }: RunOptions): number {
  return device === 'sim' ? Math.min(maximumBytes, mebibyte) : maximumBytes
}

/** The measured sizes: bytes of the larger side of a rank, as in nccl-tests, with at least one element per rank. */
export function sizesOf(operation: OperationName, ranks: number, most: number): number[] {
  const least = operation === 'all-reduce' ? 8 : Math.max(8, 4 * ranks)
  return [...new Set(allSizes.map((bytes) => Math.max(bytes, least)))].filter((bytes) => bytes <= most)
}

export function loopCountsFor(bytes: number, { device }: RunOptions): LoopCounts {
  if (device === 'sim') return { iterations: bytes <= 64 * 1024 ? 20 : 3, warmUps: 1, turns: 1 }
  if (bytes <= 1024) return { iterations: 1000, warmUps: 50, turns: 3 }
  if (bytes <= 64 * 1024) return { iterations: 1000, warmUps: 50, turns: 1 }
  if (bytes <= 4 * mebibyte) return { iterations: 300, warmUps: 20, turns: 1 }
  // A loop takes about 10 ms, so that the wait at its end is negligible: bandwidth limits are about one percent.
  if (bytes <= 16 * mebibyte) return { iterations: 200, warmUps: 10, turns: 3 }
  if (bytes <= 64 * mebibyte) return { iterations: 60, warmUps: 5, turns: 3 }
  return { iterations: 20, warmUps: 3, turns: 1 }
}

import type { RunOptions } from '../options.js'
import type { LoopCounts } from '../processes/comparison.js'

const mebibyte = 2 ** 20
const allSizes = [
  ...[8, 64, 1024, 8 * 1024, 64 * 1024],
  ...[mebibyte, 4 * mebibyte, 16 * mebibyte, 64 * mebibyte, 256 * mebibyte, 1024 * mebibyte],
]

export const operationNames = ['all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all'] as const
export type OperationName = (typeof operationNames)[number]

/** The largest message; small on the software device. */
export function largestMessage({ device, maximumBytes }: RunOptions): number {
  return device === 'sim' ? Math.min(maximumBytes, mebibyte) : maximumBytes
}

/** What is measured: bytes of the larger side of a rank, as nccl-tests count, and never less than an element a rank. */
export function sizesOf(operation: OperationName, ranks: number, most: number): number[] {
  const least = operation === 'all-reduce' ? 8 : Math.max(8, 4 * ranks)
  return [...new Set(allSizes.map((bytes) => Math.max(bytes, least)))].filter((bytes) => bytes <= most)
}

export function loopCountsFor(bytes: number, { device }: RunOptions): LoopCounts {
  if (device === 'sim') return { iterations: bytes <= 64 * 1024 ? 20 : 3, warmUps: 1, turns: 1 }
  if (bytes <= 1024) return { iterations: 1000, warmUps: 50, turns: 3 }
  if (bytes <= 64 * 1024) return { iterations: 1000, warmUps: 50, turns: 1 }
  if (bytes <= 4 * mebibyte) return { iterations: 300, warmUps: 20, turns: 1 }
  // Some 10 ms, so that the wait at the end of a loop does not count: bars of bandwidth are about one percent.
  if (bytes <= 16 * mebibyte) return { iterations: 200, warmUps: 10, turns: 3 }
  if (bytes <= 64 * mebibyte) return { iterations: 60, warmUps: 5, turns: 3 }
  return { iterations: 20, warmUps: 3, turns: 1 }
}

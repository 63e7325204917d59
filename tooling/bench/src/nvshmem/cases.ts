import type { RunOptions } from '../options.js'
import type { LoopCounts } from '../processes/comparison.js'

const kibibyte = 2 ** 10
const mebibyte = 2 ** 20

/** The cases by `--only` group. native/nvshmem.c describes each. */
export const groups = {
  'put-get': ['put', 'get', 'put-latency', 'get-latency'],
  barrier: ['barrier', 'sync', 'barrier-on-stream'],
  host: ['host-put', 'host-get', 'p', 'g'],
  // These run last, because an NVSHMEM that does not support them ends the process.
  atomics: ['atomic-add', 'atomic-fetch-add', 'atomic-set', 'atomic-fetch', 'atomic-compare-swap'],
} as const
export type Group = keyof typeof groups
export const groupNames = Object.keys(groups) as Group[]

const sizes = [8, 64, 1024, 8 * kibibyte, 64 * kibibyte, mebibyte, 4 * mebibyte, 16 * mebibyte, 64 * mebibyte]
const everySize = [...sizes, 256 * mebibyte]

/** Cases that can be awaited instead of blocking the thread. */
const awaitable = ['put-latency', 'get-latency', 'host-put', 'host-get', 'barrier', 'sync', 'atomic-fetch-add']

/**
 * C, the raw package, the safe package with blocking calls, and with promises. `C again` is a second copy of the C
 * program, which shows the noise floor.
 */
export const names = ['C', 'raw', 'shoal', 'awaited', 'C again'] as const
export type Name = (typeof names)[number]

export function namesOf(test: string): readonly Name[] {
  return names.filter((name) => name !== 'awaited' || awaitable.includes(test))
}

/** True for cases in which all PEs take part. In other cases only PE 0 does. */
export function isCollective(test: string): boolean {
  return (groups.barrier as readonly string[]).includes(test)
}

export function largestMessage({ device, maximumBytes }: RunOptions): number {
  return device === 'sim' ? Math.min(maximumBytes, mebibyte) : Math.min(maximumBytes, 256 * mebibyte)
}

/** The sizes of a case. A case that moves a word or nothing has one size. */
export function sizesOf(test: string, most: number): number[] {
  if (test === 'put' || test === 'get') return everySize.filter((bytes) => bytes <= most)
  if (test.endsWith('-latency')) return everySize.filter((bytes) => bytes <= Math.min(most, kibibyte))
  if (test.startsWith('host-')) return everySize.filter((bytes) => bytes <= Math.min(most, kibibyte))
  return [8]
}

export function loopCountsFor(bytes: number, { device }: RunOptions): LoopCounts {
  if (device === 'sim') return { iterations: bytes <= 64 * kibibyte ? 20 : 3, warmUps: 1, loops: 1 }
  if (bytes <= kibibyte) return { iterations: 500, warmUps: 50, loops: 3 }
  if (bytes <= 64 * kibibyte) return { iterations: 500, warmUps: 50, loops: 1 }
  // A loop takes about 10 ms at 400 GB/s, so that the wait at its end is negligible.
  const iterations = Math.min(2000, Math.max(20, Math.round((4800 * mebibyte) / bytes)))
  return { iterations, warmUps: Math.ceil(iterations / 20), loops: 1 }
}

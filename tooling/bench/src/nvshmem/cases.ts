import type { RunOptions } from '../options.js'

const kibibyte = 2 ** 10
const mebibyte = 2 ** 20

/** What is measured; native/nvshmem.c tells what each does. */
export const groups = {
  'put-get': ['put', 'get', 'put-latency', 'get-latency'],
  barrier: ['barrier', 'sync', 'barrier-on-stream'],
  host: ['host-put', 'host-get', 'p', 'g'],
  // Last, since an NVSHMEM that cannot do them ends the process.
  atomics: ['atomic-add', 'atomic-fetch-add', 'atomic-set', 'atomic-fetch', 'atomic-compare-swap'],
} as const
export type Group = keyof typeof groups
export const groupNames = Object.keys(groups) as Group[]

const sizes = [8, 64, 1024, 8 * kibibyte, 64 * kibibyte, mebibyte, 4 * mebibyte, 16 * mebibyte, 64 * mebibyte]
const everySize = [...sizes, 256 * mebibyte]

/** What can be awaited instead of blocking the thread. */
const awaitable = ['put-latency', 'get-latency', 'host-put', 'host-get', 'barrier', 'sync', 'atomic-fetch-add']

/**
 * Who takes part: C, the raw package, the safe one with calls that block, and with promises; and C once more, which tells
 * how much the machine makes of two that are the same.
 */
export const contestants = ['C', 'raw', 'shoal', 'awaited', 'C again'] as const
export type Contestant = (typeof contestants)[number]

export function contestantsOf(test: string): readonly Contestant[] {
  return contestants.filter((name) => name !== 'awaited' || awaitable.includes(test))
}

/** Every PE takes part in these; the others are PE 0's alone. */
export function isCollective(test: string): boolean {
  return (groups.barrier as readonly string[]).includes(test)
}

export function largestMessage({ device, maximumBytes }: RunOptions): number {
  return device === 'sim' ? Math.min(maximumBytes, mebibyte) : Math.min(maximumBytes, 256 * mebibyte)
}

/** The sizes of a case; what moves one word has one. */
export function sizesOf(test: string, most: number): number[] {
  if (test === 'put' || test === 'get') return everySize.filter((bytes) => bytes <= most)
  if (test.endsWith('-latency')) return everySize.filter((bytes) => bytes <= Math.min(most, kibibyte))
  if (test.startsWith('host-')) return everySize.filter((bytes) => bytes <= Math.min(most, kibibyte))
  return [8]
}

export interface Effort {
  /** Operations in one loop, and before it. */
  readonly iterations: number
  readonly warmUps: number
  /** Of how many loops the best counts in each round: short ones vary most, and cost little. */
  readonly loops: number
}

export function iterationsFor(bytes: number, { device }: RunOptions): Effort {
  if (device === 'sim') return { iterations: bytes <= 64 * kibibyte ? 20 : 3, warmUps: 1, loops: 1 }
  if (bytes <= kibibyte) return { iterations: 500, warmUps: 50, loops: 3 }
  if (bytes <= 64 * kibibyte) return { iterations: 500, warmUps: 50, loops: 1 }
  // Some 10 ms at 400 GB/s, so that what a loop costs beside its transfers does not count.
  const iterations = Math.min(2000, Math.max(20, Math.round((4800 * mebibyte) / bytes)))
  return { iterations, warmUps: Math.ceil(iterations / 20), loops: 1 }
}

import { Device } from '@shoal/driver'
import { bootstrap } from '@shoal/launch'
import { vi } from 'vitest'
import { optionsOf } from '../../src/bench/command.js'
import { type BenchOptions, readOptions } from '../../src/bench/options.js'
import type { RankGroup } from '../../src/bench/rankGroup.js'

export const read = (...words: string[]): BenchOptions => readOptions([...words, '--device', 'sim'], optionsOf)
export const nothing = async (): Promise<void> => undefined

/** Sets what `bootstrap()` resolves to. The test file mocks `@shoal/launch`. */
export function job(launcher: string, changed: object = {}) {
  const lost = new AbortController().signal
  const one = {
    ...{ launcher, rank: 1, worldSize: 2, deviceOrdinal: 1, lost, dispose: vi.fn(nothing) },
    share: vi.fn(async (_: string, make: () => Uint8Array) => make()),
    gather: vi.fn(async (_: string, bytes: Uint8Array) => [Buffer.from('2.5'), bytes, Buffer.from('1')]),
    ...changed,
  }
  vi.mocked(bootstrap).mockResolvedValue(one as never)
  return one
}

/** Returns a group of this process's ranks, as one of `processes`. */
export function groupOf(ranks: readonly number[], changed: Partial<RankGroup> = {}): RankGroup {
  return {
    ...{ worldSize: ranks.length, processes: 1, isRank: false, isFirst: true, lost: undefined },
    ranks: ranks.map((rank) => ({ rank, device: Device.get(rank) })),
    share: async (_, make) => make(),
    sum: async (value) => value,
    barrier: nothing,
    leave: nothing,
    ...changed,
  }
}

/** Returns a group of one of three processes. The other two take twice as long. */
export function groupOfThree(own: number[], ranks: readonly number[] = []) {
  return groupOf(ranks, {
    ...{ worldSize: 2, processes: 3, barrier: vi.fn(nothing) },
    sum: async (value) => {
      own.push(value)
      return value * 5
    },
  })
}

/** Makes every timed interval 6 ms long. */
export function sixMilliseconds(): void {
  let now = 0n
  vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => {
    now += 6_000_000n
    return now
  })
}

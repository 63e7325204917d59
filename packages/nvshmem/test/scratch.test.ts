import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
// What the package does not export: the sizes are those at which an H200 came out wrong.
import { mostInPlace, reduceScratchOf, requireScratch } from '../src/collectives/scratch.js'
import { environmentOfNvshmem } from '../src/session/environment.js'
import { resultsOf } from './fixtures/job.js'
import { callsIn, compileRecordingLibrary } from './fixtures/recordingLibrary.js'

const KiB = 1024
const byDefault = 512 * KiB

describe('the scratch memory of reductions', () => {
  test.for([
    [undefined, byDefault],
    ['', byDefault],
    ['16', 16],
    ['64K', 64 * KiB],
    ['8M', 8192 * KiB],
    ['much', byDefault],
  ] as const)('NVSHMEM_REDUCE_SCRATCH_SIZE=%s', ([text, bytes]) => {
    expect(reduceScratchOf({ NVSHMEM_REDUCE_SCRATCH_SIZE: text })).toBe(bytes)
  })

  test('has room for all parts of a reduceScatter in one half', () => {
    requireScratch(64 * KiB, 4, byDefault, 'it')
    requireScratch(87_376, 3, byDefault, 'it')
    expect(() => requireScratch(64 * KiB + 4, 4, byDefault, 'it')).toThrow(
      /^it: 4 parts of 65540 bytes have no room in the 262144 bytes .* NVSHMEM_REDUCE_SCRATCH_SIZE/,
    )
    expect(() => requireScratch(87_384, 3, byDefault, 'it')).toThrow(RangeError)
  })

  test('is not needed by a PE alone', () => {
    requireScratch(2 ** 40, 1, byDefault, 'it')
  })

  test.for([
    { peCount: 3, right: 16_376, wrong: 16_392, elementBytes: 1 },
    { peCount: 4, right: 8200, wrong: 16_376, elementBytes: 1 },
    { peCount: 4, right: 8200, wrong: 16_376, elementBytes: 2 },
    { peCount: 3, right: 16_376, wrong: 32_776, elementBytes: 4 },
    { peCount: 4, right: 8200, wrong: 21_840, elementBytes: 8 },
  ])('$peCount PEs reduce $right bytes in place at once, not $wrong', ({ peCount, right, wrong, elementBytes }) => {
    const bytes = mostInPlace(elementBytes, peCount, byDefault) * elementBytes
    expect(bytes).toBeGreaterThanOrEqual(right)
    expect(bytes).toBeLessThan(wrong)
    expect(bytes % 16).toBe(0)
  })

  test('two PEs reduce any number in place at once, and many PEs with little of it none', () => {
    expect(mostInPlace(8, 2, 16)).toBe(Number.POSITIVE_INFINITY)
    expect(mostInPlace(8, 3, 256)).toBe(1)
    expect(mostInPlace(8, 3, 128)).toBe(0)
  })
})

describe('collectives', () => {
  test.for([3, 5])('%i PEs reduce in place what takes many calls, in every way', async (worldSize) => {
    const elements = 20_011
    const expected = Array.from(
      { length: elements },
      (_, at) => worldSize * (at % 1000) + (worldSize * (worldSize - 1)) / 2,
    )
    const results = await resultsOf<Record<string, string>>('teams.inPlace', worldSize, { options: { elements } })
    const digest = String(expected.reduce((sum, value, at) => (sum * 31 + value * (at + 1)) % 1_000_000_007, 7))
    for (const { wait, sync, stream, busy } of results) {
      expect({ wait, sync, stream, busy }).toEqual({ wait: digest, sync: digest, stream: digest, busy: digest })
    }
  })

  test('refuse parts that have no room, before anything is called', async () => {
    const messages = await resultsOf<string[]>('teams.withoutRoom', 2)
    for (const [refused, fits] of messages) {
      expect(refused).toMatch(/2 parts of 131076 bytes have no room in the 262144 bytes/)
      expect(fits).toBe('nothing')
    }
  })

  test('have as much as the variable says', async () => {
    const environment = { NVSHMEM_REDUCE_SCRATCH_SIZE: '1M' }
    const messages = await resultsOf<string[]>('teams.withoutRoom', 2, { environment })
    expect(messages.map(([first]) => first)).toEqual(['nothing', 'nothing'])
  })
})

describe('what is called for 20,000 bytes', () => {
  const { library, calls } = compileRecordingLibrary()

  /** How often each reduction was called. */
  function reductionsWith(pes: number): Record<string, number> {
    const file = `${calls}.${pes}`
    const environment = { SHOAL_NVSHMEM_LIBRARY: library, SHOAL_CALLS: file, SHOAL_PES: String(pes), NODE_OPTIONS: '' }
    const run = spawnSync(process.execPath, [fileURLToPath(new URL('fixtures/largeInPlace.mjs', import.meta.url))], {
      encoding: 'utf8',
      timeout: 30_000,
      env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1', ...environment },
    })
    expect(run.stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
    const counts: Record<string, number> = {}
    for (const name of callsIn(file).filter((name) => /_reduce(_|$)/.test(name))) counts[name] = (counts[name] ?? 0) + 1
    return counts
  }

  test.for([
    { pes: 2, times: 1 },
    { pes: 3, times: 2 },
    { pes: 9, times: 5 },
  ])('$pes PEs: $times times in place, once otherwise', ({ pes, times }) => {
    expect(reductionsWith(pes)).toEqual({
      nvshmem_uint8_sum_reduce: times,
      nvshmem_uint8_max_reduce: times,
      nvshmemx_uint8_sum_reduce_on_stream: times,
      nvshmem_uint8_min_reduce: 1,
    })
  })
})

test('what NVSHMEM reads of the environment, it reads before its first call', () => {
  vi.stubEnv('NVSHMEM_REDUCE_SCRATCH_SIZE', '1K')
  expect(environmentOfNvshmem()['NVSHMEM_REDUCE_SCRATCH_SIZE']).toBe('1K')
  vi.stubEnv('NVSHMEM_REDUCE_SCRATCH_SIZE', '2K')
  expect(environmentOfNvshmem()['NVSHMEM_REDUCE_SCRATCH_SIZE']).toBe('1K')
  vi.unstubAllEnvs()
})

import { NvshmemVersion } from '@shoal/types'
import { describe, expect, test, vi } from 'vitest'
import { environmentOfNvshmem } from '../src/workarounds/environment.js'
// Not exported. An H200 returned wrong results for these sizes.
import { maxElementsPerCall, reduceScratchOf, requireScratch } from '../src/workarounds/reduceScratch.js'
import { resultsOf } from './fixtures/job.js'
import { callsIn, compileRecordingLibrary, runOn } from './fixtures/recordingLibrary.js'

function errorOf(run: () => void): Error {
  try {
    run()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was thrown')
}

const KiB = 1024
const byDefault = 512 * KiB

describe('the scratch memory of reductions', () => {
  test.for([
    [undefined, byDefault],
    ['16', 16],
    ['64K', 64 * KiB],
    ['64kB', 64 * KiB],
    ['8M', 8192 * KiB],
    [' 1.5M', 1536 * KiB],
    ['.5m', 512 * KiB],
    ['+1e6', 1_000_000],
    ['1000.1', 1001],
    ['1G', 1024 ** 3],
    // With a value that it cannot parse, NVSHMEM uses no scratch memory.
    ['', 0],
    ['much', 0],
    ['64 K', 0],
    ['64B', 0],
    ['-1', 0],
  ] as const)('follows NVSHMEM_REDUCE_SCRATCH_SIZE=%s', ([text, bytes]) => {
    expect(reduceScratchOf({ NVSHMEM_REDUCE_SCRATCH_SIZE: text }, NvshmemVersion.of(3, 4, 5))).toBe(bytes)
  })

  test('holds all parts of a reduceScatter in one half', () => {
    requireScratch(64 * KiB, 4, byDefault, 'it')
    requireScratch(87_376, 3, byDefault, 'it')
    expect(() => requireScratch(64 * KiB + 4, 4, byDefault, 'it')).toThrow(
      /^it: 4 parts of 65540 bytes have no room in the 262144 bytes .* NVSHMEM_REDUCE_SCRATCH_SIZE/,
    )
    expect(() => requireScratch(87_384, 3, byDefault, 'it')).toThrow(RangeError)
  })

  test('has halves of a multiple of eight bytes', () => {
    requireScratch(4, 2, 24, 'it')
    expect(() => requireScratch(4, 3, 24, 'it')).toThrow('the 8 bytes that')
    requireScratch(0, 2, 15, 'it')
    expect(() => requireScratch(1, 2, 15, 'it')).toThrow('the 0 bytes that')
  })

  test.for([
    [131_076, 2],
    [1, 3],
    [87_384, 3],
    [32_792, 7],
  ] as const)(
    'requested for %i bytes of %i PEs suffices for them, and for reductions in one call',
    ([bytes, peCount]) => {
      const [, needed] = /_SIZE=(\d+)/.exec(errorOf(() => requireScratch(bytes, peCount, 0, 'it')).message) ?? []
      requireScratch(bytes, peCount, Number(needed), 'it')
      for (const width of [1, 2, 4, 8])
        expect(maxElementsPerCall(width, peCount, Number(needed), false)).toBe(Number.POSITIVE_INFINITY)
    },
  )

  test('is not needed by a single PE', () => {
    requireScratch(2 ** 40, 1, byDefault, 'it')
  })

  test.for([
    { peCount: 3, right: 16_376, wrong: 16_392, elementBytes: 1 },
    { peCount: 4, right: 8200, wrong: 16_376, elementBytes: 1 },
    { peCount: 4, right: 8200, wrong: 16_376, elementBytes: 2 },
    { peCount: 3, right: 16_376, wrong: 32_776, elementBytes: 4 },
    { peCount: 4, right: 8200, wrong: 21_840, elementBytes: 8 },
  ])(
    'lets $peCount PEs reduce $right bytes in place at once, but not $wrong',
    ({ peCount, right, wrong, elementBytes }) => {
      const bytes = maxElementsPerCall(elementBytes, peCount, byDefault, true) * elementBytes
      expect(bytes).toBeGreaterThanOrEqual(right)
      expect(bytes).toBeLessThan(wrong)
      expect(bytes % 16).toBe(0)
    },
  )

  test('lets two PEs reduce any number in place at once, and many PEs with little scratch memory none', () => {
    expect(maxElementsPerCall(8, 2, 128, true)).toBe(Number.POSITIVE_INFINITY)
    expect(maxElementsPerCall(8, 1, 1, true)).toBe(Number.POSITIVE_INFINITY)
    expect(maxElementsPerCall(8, 3, 256, true)).toBe(1)
    expect(maxElementsPerCall(8, 3, 128, true)).toBe(0)
  })

  test.for([
    { scratch: 1_000_000, elementBytes: 4, most: Number.POSITIVE_INFINITY },
    { scratch: 1_000_000, elementBytes: 8, most: 7812 },
    { scratch: 100_000, elementBytes: 4, most: 1560 },
    { scratch: 100_000, elementBytes: 2, most: Number.POSITIVE_INFINITY },
    { scratch: 112, elementBytes: 8, most: 0 },
    { scratch: 15, elementBytes: 1, most: 0 },
    { scratch: 0, elementBytes: 4, most: 0 },
  ])('of $scratch bytes allows $most elements of $elementBytes bytes per round', ({ scratch, elementBytes, most }) => {
    for (const peCount of [2, 3, 8]) expect(maxElementsPerCall(elementBytes, peCount, scratch, false)).toBe(most)
    expect(maxElementsPerCall(elementBytes, 2, scratch, true)).toBe(most)
  })
})

describe('collectives with limited scratch memory', () => {
  test.for([
    { worldSize: 3, scratch: undefined },
    { worldSize: 5, scratch: undefined },
    { worldSize: 2, scratch: '100000' },
    { worldSize: 3, scratch: '1000' },
  ])('split reductions of $worldSize PEs into many calls, in every way ($scratch)', async ({ worldSize, scratch }) => {
    const elements = 20_011
    const expected = Array.from(
      { length: elements },
      (_, at) => worldSize * (at % 1000) + (worldSize * (worldSize - 1)) / 2,
    )
    const environment = scratch === undefined ? {} : { NVSHMEM_REDUCE_SCRATCH_SIZE: scratch }
    const job = { options: { elements }, environment }
    const results = await resultsOf<Record<string, string>>('teams.inPlace', worldSize, job)
    const digest = String(expected.reduce((sum, value, at) => (sum * 31 + value * (at + 1)) % 1_000_000_007, 7))
    const everywhere = { wait: digest, sync: digest, stream: digest, busy: digest, beside: digest }
    expect(results).toEqual(results.map(() => everywhere))
  })

  test('refuse parts that do not fit, before any call', async () => {
    const messages = await resultsOf<string[]>('teams.withoutRoom', 2)
    for (const [refused, fits] of messages) {
      expect(refused).toMatch(/2 parts of 131076 bytes have no room in the 262144 bytes/)
      expect(fits).toBe('nothing')
    }
  })

  test('use the size from the variable', async () => {
    const environment = { NVSHMEM_REDUCE_SCRATCH_SIZE: '1M' }
    const messages = await resultsOf<string[]>('teams.withoutRoom', 2, { environment })
    expect(messages.map(([first]) => first)).toEqual(['nothing', 'nothing'])
  })
})

describe('split reductions', () => {
  const { library, calls } = compileRecordingLibrary()

  function runFixture(name: string, environment: NodeJS.ProcessEnv, ...words: string[]): string {
    const { stdout, errors } = runOn(library, name, environment, words)
    expect(errors).toBe('')
    return stdout
  }

  /** Returns how often each reduction was called. */
  function reductionsWith(pes: number): Record<string, number> {
    const file = `${calls}.${pes}`
    runFixture('largeInPlace.mjs', { SHOAL_CALLS: file, SHOAL_PES: String(pes) })
    const counts: Record<string, number> = {}
    for (const name of callsIn(file).filter((name) => /_reduce(_|$)/.test(name))) counts[name] = (counts[name] ?? 0) + 1
    return counts
  }

  test.for([
    { pes: 2, times: 1 },
    { pes: 3, times: 2 },
    { pes: 9, times: 5 },
  ])('of 20,000 bytes over $pes PEs make $times calls in place, and one otherwise', ({ pes, times }) => {
    expect(reductionsWith(pes)).toEqual({
      nvshmem_uint8_sum_reduce: times,
      nvshmem_uint8_max_reduce: times,
      nvshmemx_uint8_sum_reduce_on_stream: times,
      nvshmem_uint8_min_reduce: 1,
    })
  })

  test('make all calls even if the first fails, because other PEs wait in the second', () => {
    const names = {
      wait: 'nvshmem_uint8_sum_reduce',
      sync: 'nvshmem_uint8_max_reduce',
      stream: 'nvshmemx_uint8_min_reduce_on_stream',
      busy: 'nvshmemx_uint8_prod_reduce_on_stream',
    }
    const file = `${calls}.failing`
    const single = { one: 'nvshmemx_uint8_or_reduce_on_stream', broadcast: 'nvshmemx_uint8_broadcast_on_stream' }
    const all = { ...names, ...single }
    const environment = { SHOAL_CALLS: file, SHOAL_PES: '3', SHOAL_FAILS: Object.values(all).join(' ') }
    expect(JSON.parse(runFixture('failingPart.mjs', environment))).toEqual(all)
    const called = callsIn(file)
    for (const name of Object.values(names)) expect(called.filter((one) => one === name)).toHaveLength(2)
  })

  test.for([
    ['32', '0', /^done$/],
    ['0', '32', /2 parts of 8 bytes have no room in the 0 bytes/],
  ] as const)('use the variable as C code sees it, %s, and not the copy of a worker, %s', ([inC, copy, answer]) => {
    const environment = { SHOAL_CALLS: `${calls}.worker`, SHOAL_PES: '2' }
    const told = runFixture('workersVariables.mjs', environment, inC, copy).trim()
    expect(told).toMatch(answer)
    expect(told).not.toContain('with koffi')
  })
})

test('variables of NVSHMEM are read before its first call only', () => {
  vi.stubEnv('NVSHMEM_REDUCE_SCRATCH_SIZE', '1K')
  expect(environmentOfNvshmem()['NVSHMEM_REDUCE_SCRATCH_SIZE']).toBe('1K')
  vi.stubEnv('NVSHMEM_REDUCE_SCRATCH_SIZE', '2K')
  expect(environmentOfNvshmem()['NVSHMEM_REDUCE_SCRATCH_SIZE']).toBe('1K')
  vi.unstubAllEnvs()
})

import { describe, expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'

const status = (code: string): object => ({ error: code })
const range = (length: number): number[] => Array.from({ length }, (_, index) => index)

describe('transfers', () => {
  test('put and get: every dtype, every way, every kind of local memory', async () => {
    expect(await resultsOf('transfers.contiguous', 2)).toEqual([17 * 13, 17 * 13])
  })

  test('parts of buffers, and no more than those', async () => {
    for (const result of await resultsOf('transfers.parts', 3)) {
      expect(result).toEqual({ contents: [-1, -1, 1, 2, 3, -1, 4, -1], target: [1, 2, 3, 9] })
    }
  })

  test('strided, every dtype', async () => {
    expect(await resultsOf('transfers.strided', 2)).toEqual([15 * 6, 15 * 6])
  })

  test('single elements, every dtype that NVSHMEM has', async () => {
    expect(await resultsOf('transfers.elements', 2)).toEqual([12 * 6, 12 * 6])
  })
})

describe('atomics', () => {
  test('of several PEs on one element lose nothing', async () => {
    for (const result of await resultsOf('atomics.counting', 3)) {
      expect(result).toEqual({ i32: 50, u32: 50, i64: 50, u64: 50 })
    }
  })

  test('every operation, every dtype', async () => {
    expect(await resultsOf('atomics.operations', 2)).toEqual([6 * 3 + 4 * 24, 6 * 3 + 4 * 24])
  })
})

test('signals: streams that wait for one another', async () => {
  const results = await resultsOf('atomics.signals', 3)
  for (const [rank, result] of results.entries()) {
    const before = (rank + 2) % 3
    expect(result).toEqual({
      first: [before + 1, before + 1, before + 1, before + 1],
      fetched: ['0n', '7n', `${1n << 63n}n`, '1n', '7n'],
    })
  }
})

describe('collectives', () => {
  test.for([2, 3])('that move: every dtype, every way, %i PEs', async (worldSize) => {
    expect(await resultsOf('teams.moves', worldSize)).toEqual(range(worldSize).map(() => 17 * 9))
  })

  test.for([2, 3])('that compute: every operation and dtype that NVSHMEM has, %i PEs', async (worldSize) => {
    const arithmetic = 12
    const bitwise = 8
    const checks = (4 * arithmetic + 3 * bitwise) * 6
    const noBits = ['and', 'or', 'xor']
    const none = ['sum', 'prod', 'min', 'max', ...noBits]
    for (const result of await resultsOf('teams.reductions', worldSize)) {
      expect(result).toEqual({
        checks,
        refused: { f16: noBits, bf16: noBits, f32: noBits, f64: noBits, f8e4m3: none, f8e5m2: none, bool: none },
      })
    }
  })
})

describe('teams', () => {
  test('are split, translate, and are destroyed once', async () => {
    const results = await resultsOf<Record<string, unknown>>('teams.splits', 4)
    for (const [rank, result] of results.entries()) {
      const isEven = rank % 2 === 0
      const [row, column] = [Math.floor(rank / 2), rank % 2]
      const rowSum = row === 0 ? 0b0011 : 0b1100
      const columnSum = column === 0 ? 0b0101 : 0b1010
      expect(result).toMatchObject({
        even: isEven ? [row, 2] : null,
        x: [column, 2],
        y: [row, 2],
        sums: isEven ? [0b0101, rowSum, columnSum] : [rowSum, columnSum],
        translated: isEven ? [2, 0] : null,
        config: isEven ? { contexts: 2 } : null,
        gone: isEven ? [status('SHOAL_DISPOSED'), true] : null,
        own: status('TypeError'),
      })
    }
  })

  test('are made of any PEs by an id', async () => {
    expect(await resultsOf('teams.created', 3)).toEqual([null, [1, 2, 2], [0, 2, 2]])
  })
})

describe('symmetric memory', () => {
  test('copies in and out, views, fillings, resizing', async () => {
    for (const result of await resultsOf('heap.copies', 2)) {
      expect(result).toMatchObject({
        filled: [1.5, 1.5, 1.5, 1.5, 1.5, 1.5],
        copied: [1, 2, 3, 4, 5, 6],
        mixed: [1, 2, 20, 30, 5, 6],
        back: [-5, -6],
        bits: ['13830554455654793216n'],
        filledOthers: [
          [0x3e00, 0x3e00, 0x3e00],
          ['-2n', '-2n'],
        ],
        resized: [-1, -2, -3, -4, -5, -6],
        old: status('SHOAL_DISPOSED'),
        after: status('SHOAL_DISPOSED'),
      })
    }
  })

  test('of a peer, addressed directly', async () => {
    const results = await resultsOf('heap.peers', 3)
    for (const [rank, result] of results.entries()) {
      const before = (rank + 2) % 3
      expect(result).toMatchObject({
        contents: [0, before + 10, before + 20],
        isOwn: true,
        pe: (rank + 1) % 3,
        length: 2,
      })
    }
  })

  test('registered, refused, and more than there is', async () => {
    for (const result of await resultsOf('heap.registered', 2)) {
      expect(result).toMatchObject({
        twice: status('NVSHMEMX_ERROR_INVALID_VALUE'),
        gone: status('NVSHMEMX_ERROR_INVALID_VALUE'),
        noMapping: status('NVSHMEMX_ERROR_INVALID_VALUE'),
        tooMuch: status('NVSHMEMX_ERROR_OUT_OF_MEMORY'),
        noCode: { error: expect.stringMatching(/^NVSHMEMX_ERROR/) },
        disposed: true,
      })
    }
  })
})

import { describe, expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'

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

import { describe, expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'

describe('transfers', () => {
  test('put and get every dtype, by every method, with every kind of local memory', async () => {
    expect(await resultsOf('transfers.contiguous', 2)).toEqual([17 * 13, 17 * 13])
  })

  test('copy exactly the given parts of buffers', async () => {
    for (const result of await resultsOf('transfers.parts', 3)) {
      expect(result).toEqual({ contents: [-1, -1, 1, 2, 3, -1, 4, -1], target: [1, 2, 3, 9] })
    }
  })

  test('copy every dtype with strides', async () => {
    expect(await resultsOf('transfers.strided', 2)).toEqual([15 * 6, 15 * 6])
  })

  test('copy single elements of every dtype of NVSHMEM', async () => {
    expect(await resultsOf('transfers.elements', 2)).toEqual([12 * 6, 12 * 6])
  })
})

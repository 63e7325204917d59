import { join } from 'node:path'
import { inspect } from 'node:util'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { beforeAll, describe, expect, test } from 'vitest'
import { libraries, libraryFolder } from '../../sim/src/index.js'
import { resultsOf } from './fixtures/job.js'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
let longs: SymmetricBuffer<'u64'>
let floats: SymmetricBuffer<'f32'>

beforeAll(async () => {
  longs = await pe.session.allocate('u64', 4, { zeroed: true })
  floats = await pe.session.allocate('f32', 1)
})

describe('AtomicOperations', () => {
  test('from several PEs on one element lose no update', async () => {
    for (const result of await resultsOf('atomics.counting', 3)) {
      expect(result).toEqual({ i32: 50, u32: 50, i64: 50, u64: 50 })
    }
  })

  test('exist for every operation and each of its dtypes', async () => {
    expect(await resultsOf('atomics.operations', 2)).toEqual([6 * 3 + 4 * 24, 6 * 3 + 4 * 24])
  })

  test("have the same results by kernels, which NVIDIA's library needs", async () => {
    // The software device's files under other names, so that the package takes them for NVIDIA's.
    const environment = {
      SHOAL_DEVICE: '',
      SHOAL_CUDA_LIBRARY: join(libraryFolder(), libraries.cuda),
      SHOAL_NVSHMEM_LIBRARY: join(libraryFolder(), libraries.nvshmem),
    }
    const checks = 6 * 3 + 4 * 24
    expect(await resultsOf('atomics.operations', 2, { environment })).toEqual([checks, checks])
    for (const result of await resultsOf('atomics.counting', 3, { environment })) {
      expect(result).toEqual({ i32: 50, u32: 50, i64: 50, u64: 50 })
    }
    expect(await resultsOf('atomics.made', 1, { environment })).toEqual(['kernels'])
  })

  test('print in one line', () => {
    expect(inspect(pe.session.atomics)).toBe("AtomicOperations { pe: 0, madeBy: 'library' }")
  })

  refuses(pe, [
    [
      'a dtype that the operation does not have',
      () => pe.session.atomics.add(anything(floats), 1, { pe: 0 }),
      /no atomic add of f32, only of i32/,
    ],
    [
      'an element that is not there',
      () => pe.session.atomics.fetch(longs, { pe: 0, index: 4 }),
      'Session.atomics.fetch: index must be an integer from 0 to 3, not 4',
    ],
    ['a PE that is not there', () => pe.session.atomics.increment(longs, { pe: 3 }), RangeError],
    ['a value of another type', () => pe.session.atomics.set(longs, anything('1'), { pe: 0 }), TypeError],
    [
      'a value that is no number, by its name',
      () => pe.session.atomics.fetchAdd(longs, anything('1'), { pe: 0 }),
      /^Session.atomics.fetchAdd: value must be/,
    ],
    [
      'a compared value that is not a number',
      () => pe.session.atomics.compareSwap(longs, anything('1'), 1n, { pe: 0 }),
      /^Session.atomics.compareSwap: expected must be/,
    ],
    [
      'a written value that is not a number',
      () => pe.session.atomics.compareSwap(longs, 1n, anything('1'), { pe: 0 }),
      /^Session.atomics.compareSwap: desired must be/,
    ],
    ['memory that is not symmetric', () => pe.session.atomics.fetch(anything(pe.memory()), { pe: 0 }), TypeError],
    [
      'an unknown option',
      () => pe.session.atomics.fetchAdd(longs, 1n, anything({ pe: 0, at: 1 })),
      "Session.atomics.fetchAdd: options must have only the keys pe, index, signal, timeout, not 'at'",
    ],
    [
      'a timeout where nothing could end the wait',
      () => pe.session.atomics.fetchAddSync(longs, 1n, anything({ pe: 0, timeout: 5 })),
      "Session.atomics.fetchAddSync: options must have only the keys pe, index, not 'timeout'",
    ],
  ])
})

import { expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'

const MiB = 2 ** 20

/** The error of an allocation that is refused before NVSHMEM, which would end the process. */
const refused = (api: string, wanted: number, more = ''): object => ({
  error: 'NVSHMEMX_ERROR_OUT_OF_MEMORY',
  message: expect.stringMatching(
    new RegExp(`${api}.* ${wanted * MiB} bytes .* has room for \\d+: \\d+ are free.*${more}`),
  ),
})

const environment = { SHOAL_SIM_MEMORY_BYTES: String(1024 * MiB) }

test('allocations beyond the device memory are refused by name, and memory kept by the heap counts as free', async () => {
  const results = await resultsOf('heap.room', 2, { environment })
  for (const result of results) {
    expect(result).toEqual({
      tooMuch: [refused('nvshmem_malloc', 1100), refused('nvshmem_calloc', 1100), refused('nvshmem_align', 1100)],
      beside: [refused('nvshmem_malloc', 600, 'go to allocations under way'), 600 * MiB],
      resized: refused('nvshmem_malloc', 700),
      again: 600 * MiB,
      more: refused('nvshmem_malloc', 1050, 'the heap has kept'),
      tooLarge: refused('nvshmem_malloc', 1010),
    })
  }
})

test('the heap grows in steps: allocations in the last step succeed, and further steps are refused', async () => {
  const results = await resultsOf('heap.steps', 2, {
    environment: { ...environment, NVSHMEM_CUMEM_GRANULARITY: '256M' },
  })
  const grows = `the heap grows by multiples of ${256 * MiB} `
  for (const result of results) {
    expect(result).toEqual({
      sizes: [50, 80],
      beyond: [refused('nvshmem_malloc', 30, grows), refused('nvshmem_align', 20, grows)],
      full: refused('nvshmem_malloc', 8, grows),
      together: [60 * MiB, 30 * MiB, refused('nvshmem_malloc', 40, grows)],
      largest: refused('nvshmem_malloc', 300, grows),
      hog: true,
    })
  }
})

test('the heap does not grow beyond its limit', async () => {
  const limited = { NVSHMEM_MAX_MEMORY_PER_GPU: '0.5g', NVSHMEM_CUMEM_GRANULARITY: '64M' }
  const results = await resultsOf('heap.limit', 2, { environment: { ...environment, ...limited } })
  const limit = `to less than ${512 * MiB} .NVSHMEM_MAX_MEMORY_PER_GPU.`
  for (const result of results) {
    expect(result).toEqual({
      beyond: refused('nvshmem_malloc', 512, limit),
      exact: refused('nvshmem_malloc', 448, limit),
      more: refused('nvshmem_malloc', 200, limit),
      again: 370,
    })
  }
})

import { expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'

const MiB = 2 ** 20

/** Refused before NVSHMEM was asked, which would end the process. */
const refused = (api: string, wanted: number): object => ({
  error: 'NVSHMEMX_ERROR_OUT_OF_MEMORY',
  message: expect.stringMatching(new RegExp(`${api}.* ${wanted * MiB} bytes .* has room for \\d+: \\d+ are free`)),
})

test('what the device has no room for is refused by name, and what the heap has kept counts as room', async () => {
  const results = await resultsOf('heap.room', 2, { environment: { SHOAL_SIM_MEMORY_BYTES: String(1024 * MiB) } })
  for (const result of results) {
    expect(result).toEqual({
      tooMuch: [refused('nvshmem_malloc', 1100), refused('nvshmem_calloc', 1100), refused('nvshmem_align', 1100)],
      beside: [refused('nvshmem_malloc', 600), 600 * MiB],
      resized: refused('nvshmem_malloc', 700),
      again: 600 * MiB,
      more: refused('nvshmem_malloc', 1050),
      heapFull: { error: 'NVSHMEMX_ERROR_OUT_OF_MEMORY', message: expect.stringContaining('NVSHMEM_SYMMETRIC_SIZE') },
    })
  }
})

import { expect, test } from 'vitest'
import { compileRecordingLibrary, runOn } from './fixtures/recordingLibrary.js'

test('a function missing in the library throws, and does not affect the next call on the thread', () => {
  const { library, calls } = compileRecordingLibrary([
    'nvshmemx_barrier_on_stream',
    'nvshmemx_float_put_on_stream',
    'nvshmemx_float_sum_reduce_on_stream',
    'nvshmem_float_put',
    'nvshmem_barrier',
  ])
  const run = runOn(library, 'missingFunctions.mjs', { SHOAL_CALLS: calls })
  expect(run.errors).toBe('')
  const missing = ['SHOAL_SYMBOL_NOT_FOUND', '0']
  expect(JSON.parse(run.stdout)).toEqual({
    barrier: missing,
    put: missing,
    reduce: missing,
    putSync: missing,
    barrierSync: missing,
  })
})

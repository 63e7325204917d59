import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { compileRecordingLibrary } from './fixtures/recordingLibrary.js'

test('a function that the library lacks is told, and the next call of the thread has nothing of it', () => {
  const { library, calls } = compileRecordingLibrary([
    'nvshmemx_barrier_on_stream',
    'nvshmemx_float_put_on_stream',
    'nvshmemx_float_sum_reduce_on_stream',
    'nvshmem_float_put',
    'nvshmem_barrier',
  ])
  const run = spawnSync(process.execPath, [fileURLToPath(new URL('fixtures/missingFunctions.mjs', import.meta.url))], {
    encoding: 'utf8',
    timeout: 30_000,
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '1',
      SHOAL_NVSHMEM_LIBRARY: library,
      SHOAL_CALLS: calls,
      NODE_OPTIONS: '',
    },
  })
  expect(run.stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
  const missing = ['SHOAL_SYMBOL_NOT_FOUND', '0']
  expect(JSON.parse(run.stdout)).toEqual({
    barrier: missing,
    put: missing,
    reduce: missing,
    putSync: missing,
    barrierSync: missing,
  })
})

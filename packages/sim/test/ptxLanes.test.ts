import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { buildFolder, makeTests } from './build.js'

beforeAll(makeTests, 900_000)

// The best build for this processor runs with all other native tests; here are those for older ones.
test.each([
  ['ptx_integer_test', 'base'],
  ['ptx_float_test', 'base'],
  ['ptx_matrix_test', 'base'],
  ['ptx_more_test', 'base'],
  ['ptx_integer_test', 'v3'],
  ['ptx_float_test', 'v3'],
  ['ptx_matrix_test', 'v3'],
  ['ptx_more_test', 'v3'],
])('%s in the loops of %s', (program, lanes) => {
  const path = join(buildFolder, 'test', program)
  const { status, stdout, stderr } = spawnSync(path, {
    encoding: 'utf8',
    env: { ...process.env, SHOAL_SIM_LANES: lanes },
  })
  expect({ status, stderr, failed: stdout.match(/^FAILED.*/gm) }).toEqual({ status: 0, stderr: '', failed: null })
})

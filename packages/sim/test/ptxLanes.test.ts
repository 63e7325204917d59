import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { buildFolder, makeTests } from './build.js'

beforeAll(makeTests, 900_000)

// All other native tests use the best build for this processor. These programs use the builds for older ones.
const programs = [
  'ptx_integer_test',
  'ptx_float_test',
  'ptx_conversion_test',
  'ptx_matrix_test',
  'ptx_fragment_test',
  'ptx_more_test',
]
const runs = ['base', 'v3'].flatMap((lanes) => programs.map((program): [string, string] => [program, lanes]))

test.each(runs)('the software device computes %s in the loops of %s', (program, lanes) => {
  const path = join(buildFolder, 'test', program)
  const { status, stdout, stderr } = spawnSync(path, {
    encoding: 'utf8',
    env: { ...process.env, SHOAL_SIM_LANES: lanes },
  })
  expect({ status, stderr, failed: stdout.match(/^FAILED.*/gm) }).toEqual({ status: 0, stderr: '', failed: null })
})

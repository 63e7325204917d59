import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { startRanks } from '../../testing/program.js'

test('kernels put into the memory of the next PE', { timeout: 240_000 }, async ({ skip }) => {
  const library = process.env['SHOAL_NVSHMEM_LIBRARY']
  const home = library ? dirname(dirname(library)) : ''
  if (!existsSync(join(home, 'lib', 'libnvshmem_device.a'))) skip('no device library of NVSHMEM on this machine')
  if (spawnSync('nvcc', ['--version']).error !== undefined) skip('no nvcc on this machine')
  vi.stubEnv('NVSHMEM_HOME', home)
  const { code, output, errors } = await startRanks(3, new URL('../dist/kernel.js', import.meta.url)).end
  vi.unstubAllEnvs()
  expect(output.match(/10007 elements from the kernel of the PE to the left, 0 wrong/g), output + errors).toHaveLength(
    3,
  )
  expect(code, output + errors).toBe(0)
})

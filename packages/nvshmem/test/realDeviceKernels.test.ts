import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { runJob } from './fixtures/job.js'

const host = process.env['SHOAL_NVSHMEM_LIBRARY']
const home = host === undefined || host === '' ? '' : dirname(dirname(host))
const library = join(home, 'lib', 'libnvshmem_device.a')

/** Tests CUDA C++ kernels that are linked with NVIDIA's device library and run between PEs on the software device. */
describe('kernels that call NVSHMEM in device code', () => {
  const ptx = join(scratchFolder(), 'device.ptx')
  let reason: string | undefined

  beforeAll(() => {
    if (!existsSync(library)) reason = 'no libnvshmem_device.a on this machine: set SHOAL_NVSHMEM_LIBRARY'
    else if (spawnSync('nvcc', ['--version']).error !== undefined) reason = 'no nvcc on this machine'
    if (reason !== undefined) return
    const source = fileURLToPath(new URL('fixtures/kernels/device.cu', import.meta.url))
    const options = ['-rdc=true', '-ptx', '-arch=compute_80', `-I${join(home, 'include')}`]
    const { status, stderr } = spawnSync('nvcc', [...options, '-o', ptx, source], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
  }, 600_000)

  test.for([1, 2, 5])(
    'run transfers, atomics, collectives and waits on %i PEs',
    { timeout: 600_000 },
    async (pes, { skip }) => {
      if (reason !== undefined) return skip(reason)
      const environment = { SHOAL_NVSHMEM_LIBRARY: '' }
      const ends = await runJob('deviceKernels.all', pes, { options: { ptx, library }, environment, limit: 500_000 })
      for (const { code, failed, output } of ends)
        expect({ code, failed }, output).toEqual({ code: 0, failed: undefined })
    },
  )
})

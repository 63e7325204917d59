import { expect } from 'vitest'

/**
 * Libraries that the environment names come before the software device, which cannot stand behind a real libcudart or
 * NCCL. They are for the tests that ask for them: the files called `real*.test.ts`, and those of the sweep. All others
 * run without them.
 */
const variables = ['SHOAL_CUDA_LIBRARY', 'SHOAL_CUDART_LIBRARY', 'SHOAL_NCCL_LIBRARY', 'SHOAL_NVSHMEM_LIBRARY']
const device = process.env['SHOAL_DEVICE'] ?? 'sim'

if (device === 'sim' && !/\/real[^/]*$|\/tooling\/sweep\//.test(expect.getState().testPath ?? '')) {
  for (const name of variables) delete process.env[name]
}

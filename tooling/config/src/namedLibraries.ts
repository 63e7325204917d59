import { expect } from 'vitest'

/**
 * If the environment names a library, Shoal loads it instead of the software device, and the software device cannot
 * work under a real libcudart or NCCL. Only the tests that ask for real libraries keep these variables: the files named
 * `real*.test.ts` and those of the sweep. All other tests run without them.
 */
const variables = ['SHOAL_CUDA_LIBRARY', 'SHOAL_CUDART_LIBRARY', 'SHOAL_NCCL_LIBRARY', 'SHOAL_NVSHMEM_LIBRARY']
const device = process.env['SHOAL_DEVICE'] ?? 'sim'

if (device === 'sim' && !/\/real[^/]*$|\/tooling\/sweep\//.test(expect.getState().testPath ?? '')) {
  for (const name of variables) delete process.env[name]
}

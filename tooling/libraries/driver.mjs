import { cudaManual, macro, systemFolders } from './places.mjs'

/** @type {import('./record.mjs').LibraryRecord} */
export const driver = {
  id: 'driver',
  title: 'CUDA driver',
  versionTitle: 'CUDA',
  module: '@shoal/cuda-sys/driver',
  safePackages: ['driver'],
  headers: {
    product: 'cuda',
    main: 'cuda.h',
    needs: [],
    versionFile: 'cuda.h',
    versionPatterns: [macro('CUDA_VERSION')],
    versionSteps: [1],
    variables: { home: 'CUDA_HOME' },
    wheelFolder: 'nvidia/cu13/include',
  },
  symbols: /^cu/,
  functionNames: 'cu[A-Z]',
  file: /^libcuda\.so/,
  version: { format: 'cuda', function: 'cuDriverGetVersion', parts: 1 },
  places: {
    id: 'cuda',
    title: 'NVIDIA CUDA driver',
    environment: 'SHOAL_CUDA_LIBRARY',
    linux: ['libcuda.so.1'],
    win32: ['nvcuda.dll'],
    systemFolders: [...systemFolders, '/usr/lib/wsl/lib'],
    sim: 'libshoal-sim-cuda.so.1',
    hint: 'install the NVIDIA driver (it is not part of the CUDA toolkit), or set SHOAL_DEVICE=sim to use the software device',
    resolvesItself: true,
  },
  install: {},
  manual: cudaManual('cuda-driver-api'),
}

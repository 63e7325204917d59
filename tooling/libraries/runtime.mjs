import { cudaManual, macro, toolkitFolders, wheelFoldersOf } from './places.mjs'

/** @type {import('./record.mjs').LibraryRecord} */
export const runtime = {
  id: 'runtime',
  title: 'CUDA runtime',
  versionTitle: 'CUDA',
  module: '@shoal/cuda-sys/runtime',
  safePackages: ['runtime'],
  headers: {
    product: 'cuda',
    main: 'cuda.h',
    needs: [],
    versionFile: 'cuda_runtime_api.h',
    versionPatterns: [macro('CUDART_VERSION')],
    versionSteps: [1],
    variables: { home: 'CUDA_HOME' },
    wheelFolder: 'nvidia/cu13/include',
  },
  symbols: /^cuda/,
  functionNames: 'cuda[A-Z]',
  file: /^libcudart\.so/,
  version: { format: 'cuda', function: 'cudaRuntimeGetVersion', parts: 1, oldest: 3020 },
  places: {
    id: 'cudart',
    title: 'NVIDIA CUDA runtime',
    environment: 'SHOAL_CUDART_LIBRARY',
    linux: ['libcudart.so.13', 'libcudart.so.12', 'libcudart.so.11.0'],
    win32: ['cudart64_13.dll', 'cudart64_12.dll', 'cudart64_110.dll'],
    wheelFolders: wheelFoldersOf('cuda_runtime'),
    toolkitFolders,
    sim: 'libshoal-sim-cudart.so.13',
    hint: 'install the CUDA toolkit or the Python wheel nvidia-cuda-runtime',
    resolvesItself: true,
  },
  install: {
    wheel: 'nvidia-cuda-runtime',
    conda: 'cuda-cudart',
    headerWheels: ['nvidia-cuda-crt', 'nvidia-cuda-cccl', 'nvidia-cuda-cupti', 'nvidia-cuda-profiler-api'],
    wheelFile: 'nvidia/cu13/lib/libcudart.so.*',
  },
  manual: cudaManual('cuda-runtime-api'),
}

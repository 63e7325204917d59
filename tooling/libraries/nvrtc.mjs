import { macro, toolkitFolders, wheelFoldersOf } from './places.mjs'

/** @type {import('./record.mjs').LibraryRecord} */
export const nvrtc = {
  id: 'nvrtc',
  title: 'NVRTC',
  versionTitle: 'NVRTC',
  module: '@shoal/nvrtc-sys',
  safePackages: ['nvrtc'],
  topic: 'Compiling',
  headers: {
    product: 'nvrtc',
    main: 'nvrtc.h',
    needs: [],
    // nvrtc.h has no version. It comes with cuda.h.
    versionFile: 'cuda.h',
    versionPatterns: [macro('CUDA_VERSION')],
    versionSteps: [1],
    variables: {},
    wheelFolder: 'nvidia/cu13/include',
  },
  symbols: /^(__)?nvrtc/,
  functionNames: 'nvrtc[A-Z]',
  file: /^libnvrtc\.so/,
  version: { format: 'cuda', function: 'nvrtcVersion', parts: 2 },
  places: {
    id: 'nvrtc',
    title: 'NVIDIA NVRTC',
    environment: 'SHOAL_NVRTC_LIBRARY',
    linux: ['libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so.11.2'],
    win32: ['nvrtc64_130_0.dll', 'nvrtc64_120_0.dll', 'nvrtc64_112_0.dll'],
    wheelFolders: wheelFoldersOf('cuda_nvrtc'),
    toolkitFolders,
    worksWithoutDevice: true,
    companions: /^libnvrtc-builtins\.so\.\d+\.\d+$/,
    hint: 'install the CUDA toolkit or the Python wheel nvidia-cuda-nvrtc',
    note: 'It needs neither a GPU nor a driver.',
  },
  install: { wheel: 'nvidia-cuda-nvrtc', conda: 'cuda-nvrtc', wheelFile: 'nvidia/cu13/lib/libnvrtc.so.*' },
  manual: ({ group }) => (group === '' ? undefined : 'https://docs.nvidia.com/cuda/nvrtc/index.html'),
}

import { systemFolders } from './places.mjs'

/** @type {import('./record.mjs').LibraryRecord} */
export const nvml = {
  id: 'nvml',
  title: 'NVML',
  versionTitle: 'NVML',
  module: '@shoal/nvml-sys',
  safePackages: [],
  headers: {
    product: 'nvml',
    main: 'nvml.h',
    needs: [],
    // Only the copy of nvml.h in the repository NVIDIA/go-nvml names its release.
    versionFile: 'nvml.h',
    versionPatterns: [/NVML VERSION: (\d+)\.\d+/, /NVML VERSION: \d+\.(\d+)/],
    versionSteps: [1000, 10],
    variables: { include: 'NVML_INCLUDE' },
    wheelFolder: 'nvidia/cu13/include',
  },
  symbols: /^nvml/,
  functionNames: 'nvml[A-Z]',
  file: /^libnvidia-ml\.so/,
  // The function fails before nvmlInit. The oldest header that was examined is of CUDA 10.2.
  version: { format: 'cuda', function: 'nvmlSystemGetCudaDriverVersion', parts: 1, oldest: 10_020 },
  places: {
    id: 'nvml',
    title: 'NVIDIA NVML',
    environment: 'SHOAL_NVML_LIBRARY',
    linux: ['libnvidia-ml.so.1'],
    win32: ['nvml.dll'],
    systemFolders: [...systemFolders, '/usr/lib/wsl/lib'],
    hint: 'install the NVIDIA driver, which contains NVML',
    note: 'Loading it makes no context. The software device has no NVML.',
  },
  install: {},
  manual: ({ group }) => (group === '' ? undefined : `https://docs.nvidia.com/deploy/nvml-api/group__${group}.html`),
}

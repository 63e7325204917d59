import { macro } from './places.mjs'

/** @type {import('./record.mjs').LibraryRecord} */
export const nvshmem = {
  id: 'nvshmem',
  title: 'NVSHMEM',
  versionTitle: 'NVSHMEM',
  module: '@shoal/nvshmem-sys',
  safePackages: ['nvshmem'],
  headers: {
    product: 'nvshmem',
    main: 'nvshmem_host.h',
    needs: ['cuda'],
    versionFile: 'non_abi/nvshmem_version.h',
    versionPatterns: ['MAJOR', 'MINOR', 'PATCH'].map((part) => macro(`NVSHMEM_VENDOR_${part}_VERSION`)),
    versionSteps: [10_000, 100, 1],
    variables: { include: 'NVSHMEM_INCLUDE', home: 'NVSHMEM_HOME' },
    wheelFolder: 'nvidia/nvshmem/include',
  },
  symbols: /^nvshmem/,
  functionNames: 'nvshmemx?_',
  file: /^libnvshmem_host\.so/,
  version: {
    format: 'nvshmem',
    function: 'nvshmemx_vendor_get_version_info',
    parts: 3,
    returnsNothing: true,
    oldest: 30_006,
  },
  places: {
    id: 'nvshmem',
    title: 'NVIDIA NVSHMEM',
    environment: 'SHOAL_NVSHMEM_LIBRARY',
    linux: ['libnvshmem_host.so.3'],
    wheelFolders: ['nvidia/nvshmem/lib'],
    systemFolders: ['x86_64', 'aarch64'].flatMap((machine) =>
      ['13', '12'].map((cuda) => `/usr/lib/${machine}-linux-gnu/nvshmem/${cuda}`),
    ),
    sim: 'libshoal-sim-nvshmem_host.so.3',
    hint: 'install the Python wheel nvidia-nvshmem-cu13 or the package libnvshmem3-cuda-13, on Linux',
    note: 'It finds its bootstrap and transport plugins in its own folder. A process has one NVSHMEM.',
  },
  install: {
    wheel: 'nvidia-nvshmem-cu13',
    debian: 'libnvshmem3-cuda-13',
    conda: 'libnvshmem3',
    wheelFile: 'nvidia/nvshmem/lib/libnvshmem_host.so.*',
  },
  manual: ({ group }) => (group === '' ? undefined : `https://docs.nvidia.com/nvshmem/api/gen/api/${group}.html`),
}

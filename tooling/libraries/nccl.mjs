import { macro, systemFolders } from './places.mjs'

/** @type {import('./record.mjs').LibraryRecord} */
export const nccl = {
  id: 'nccl',
  title: 'NCCL',
  versionTitle: 'NCCL',
  module: '@shoal/nccl-sys',
  safePackages: ['nccl'],
  headers: {
    product: 'nccl',
    main: 'nccl.h',
    needs: ['cuda'],
    versionFile: 'nccl.h',
    versionPatterns: [macro('NCCL_VERSION_CODE')],
    versionSteps: [1],
    variables: { include: 'NCCL_INCLUDE', home: 'NCCL_HOME' },
    wheelFolder: 'nvidia/nccl/include',
  },
  symbols: /^nccl/,
  functionNames: 'nccl[A-Z]',
  file: /^libnccl\.so/,
  version: { format: 'nccl', function: 'ncclGetVersion', parts: 1 },
  places: {
    id: 'nccl',
    title: 'NVIDIA NCCL',
    environment: 'SHOAL_NCCL_LIBRARY',
    linux: ['libnccl.so.2'],
    win32: ['nccl.dll'],
    wheelFolders: ['nvidia/nccl/lib'],
    systemFolders,
    sim: 'libshoal-sim-nccl.so.2',
    hint: 'install the package libnccl2 or the Python wheel nvidia-nccl-cu13, or set SHOAL_DEVICE=sim to use the software device',
  },
  install: {
    wheel: 'nvidia-nccl-cu13',
    debian: 'libnccl2',
    conda: 'nccl',
    wheelFile: 'nvidia/nccl/lib/libnccl.so.*',
  },
  manual: ({ name, group, header }) => {
    if (group === 'params' || header === undefined) return undefined
    const anchor = group === 'device' ? '' : `#${name.toLowerCase()}`
    return `https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/${group}.html${anchor}`
  },
}

import { toolkitFolders, wheelFoldersOf } from './places.mjs'

/** @type {import('./record.mjs').LibraryRecord} */
export const nvjitlink = {
  id: 'nvjitlink',
  title: 'nvJitLink',
  versionTitle: 'nvJitLink',
  module: '@shoal/nvjitlink-sys',
  safePackages: ['nvjitlink'],
  topic: 'Linking',
  headers: {
    product: 'nvjitlink',
    main: 'nvJitLink.h',
    needs: [],
    // The symbols that its inline functions call are named after the release.
    versionFile: 'nvJitLink.h',
    versionPatterns: [/__nvJitLinkCreate_(\d+)_\d+/, /__nvJitLinkCreate_\d+_(\d+)/],
    versionSteps: [1000, 10],
    variables: {},
    wheelFolder: 'nvidia/cu13/include',
  },
  symbols: /^(__)?nvJitLink/,
  functionNames: 'nvJitLink[A-Z]',
  file: /^libnvJitLink\.so/,
  // A library before 12.3 does not report its version. It has the functions of 12.0.
  version: { format: 'cuda', function: 'nvJitLinkVersion', parts: 2, without: 12_000 },
  places: {
    id: 'nvjitlink',
    title: 'NVIDIA nvJitLink',
    environment: 'SHOAL_NVJITLINK_LIBRARY',
    linux: ['libnvJitLink.so.13', 'libnvJitLink.so.12'],
    win32: ['nvJitLink_130_0.dll', 'nvJitLink_120_0.dll'],
    wheelFolders: wheelFoldersOf('nvjitlink'),
    toolkitFolders,
    worksWithoutDevice: true,
    hint: 'install the CUDA toolkit or the Python wheel nvidia-nvjitlink',
    note: 'It needs neither a GPU nor a driver.',
  },
  install: { wheel: 'nvidia-nvjitlink', conda: 'libnvjitlink', wheelFile: 'nvidia/cu13/lib/libnvJitLink.so.*' },
  manual: ({ group }) => (group === '' ? undefined : 'https://docs.nvidia.com/cuda/nvjitlink/index.html'),
}

// Folders that several libraries have in common.

/** Folders of distributions. */
export const systemFolders = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64']

/** Folders below a CUDA toolkit. */
export const toolkitFolders = ['lib64', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib', 'bin', 'bin/x64']

/** Folders below `site-packages` of a wheel that CUDA 13 lays into one folder, and CUDA 12 into one of its own. */
export const wheelFoldersOf = (name) => [
  'nvidia/cu13/lib',
  `nvidia/${name}/lib`,
  'nvidia/cu13/bin/x86_64',
  `nvidia/${name}/bin`,
]

/** Page of the CUDA manuals for a documentation group. */
export const cudaManual =
  (manual) =>
  ({ group }) =>
    group === '' ? undefined : `https://docs.nvidia.com/cuda/${manual}/group__${group.replaceAll('_', '__')}.html`

/** A version that a macro tells. */
export const macro = (name) => new RegExp(`#define\\s+${name}\\s+(\\d+)`)

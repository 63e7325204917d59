// Folders that several libraries share.

/** Folders of distributions. */
export const systemFolders = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64']

/** Folders below a CUDA toolkit. */
export const toolkitFolders = ['lib64', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib', 'bin', 'bin/x64']

/** Folders of a wheel below `site-packages`. CUDA 13 uses one folder for all libraries, CUDA 12 one for each. */
export const wheelFoldersOf = (name) => [
  'nvidia/cu13/lib',
  `nvidia/${name}/lib`,
  'nvidia/cu13/bin/x86_64',
  `nvidia/${name}/bin`,
]

/** Returns the page of the CUDA manuals for a documentation group. */
export const cudaManual =
  (manual) =>
  ({ group }) =>
    group === '' ? undefined : `https://docs.nvidia.com/cuda/${manual}/group__${group.replaceAll('_', '__')}.html`

/** Matches a version that a macro defines. */
export const macro = (name) => new RegExp(`#define\\s+${name}\\s+(\\d+)`)

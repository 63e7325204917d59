import { existsSync, readdirSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

export interface HeaderLocations {
  /** folder that holds cuda.h */
  cuda?: string
  /** folder that holds nccl.h */
  nccl?: string
  /** folder that holds nvshmem_host.h */
  nvshmem?: string
  /** every folder looked at, with what it was asked for */
  tried: string[]
}

export interface HeaderOptions {
  cudaHome?: string
  ncclInclude?: string
  nvshmemInclude?: string
}

/** Finds the headers: option, then environment, then the usual places. */
export function findHeaders(options: HeaderOptions): HeaderLocations {
  const tried: string[] = []
  const first = (header: string, folders: readonly (string | undefined)[]): string | undefined => {
    for (const folder of folders) {
      if (!folder) continue
      const file = join(folder, header)
      tried.push(file)
      if (existsSync(file)) return folder
    }
    return undefined
  }
  const homes = [options.cudaHome, process.env['CUDA_HOME'], process.env['CUDA_PATH'], '/usr/local/cuda']
  const cudaFolders = homes.flatMap((home) =>
    home ? [join(home, 'include'), join(home, 'targets/x86_64-linux/include')] : [],
  )
  const cuda = first('cuda.h', [...cudaFolders, '/usr/include'])
  const beside = (library: string | undefined) => (library ? join(dirname(dirname(library)), 'include') : undefined)
  const below = (home: string | undefined) => (home ? join(home, 'include') : undefined)
  const nccl = first('nccl.h', [
    options.ncclInclude,
    process.env['NCCL_INCLUDE'],
    below(process.env['NCCL_HOME']),
    beside(process.env['SHOAL_NCCL_LIBRARY']),
    ...sitePackages().map((folder) => join(folder, 'nvidia/nccl/include')),
    ...(cuda ? [cuda] : []),
    '/usr/include',
  ])
  const nvshmem = first('nvshmem_host.h', [
    options.nvshmemInclude,
    process.env['NVSHMEM_INCLUDE'],
    below(process.env['NVSHMEM_HOME']),
    beside(process.env['SHOAL_NVSHMEM_LIBRARY']),
    ...sitePackages().map((folder) => join(folder, 'nvidia/nvshmem/include')),
    ...(cuda ? [cuda] : []),
    ...['/usr/include', ...versionFolders('/usr/include', /^nvshmem_\d+$/)],
  ])
  return { tried, ...(cuda ? { cuda } : {}), ...(nccl ? { nccl } : {}), ...(nvshmem ? { nvshmem } : {}) }
}

/** Folders of packages that install one version beside another. */
function versionFolders(folder: string, pattern: RegExp): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => pattern.test(name))
    .sort()
    .reverse()
    .map((name) => join(folder, name))
}

/** Folders of Python packages: wheels bring NCCL and NVSHMEM with their headers. */
function sitePackages(): string[] {
  const folders = (process.env['PYTHONPATH'] ?? '').split(delimiter).filter((entry) => entry !== '')
  for (const prefix of [process.env['VIRTUAL_ENV'], process.env['CONDA_PREFIX'], '/usr/local', '/usr']) {
    if (!prefix || !existsSync(join(prefix, 'lib'))) continue
    for (const version of readdirSync(join(prefix, 'lib')).filter((name) => /^python3(\.\d+)?$/.test(name))) {
      folders.push(join(prefix, 'lib', version, 'site-packages'), join(prefix, 'lib', version, 'dist-packages'))
    }
  }
  return folders
}

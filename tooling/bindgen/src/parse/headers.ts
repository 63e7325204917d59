import { existsSync, readdirSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

export interface HeaderLocations {
  /** folder that holds cuda.h */
  cuda?: string
  /** folder that holds nccl.h */
  nccl?: string
  /** every folder looked at, with what it was asked for */
  tried: string[]
}

export interface HeaderOptions {
  cudaHome?: string
  ncclInclude?: string
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
  const library = process.env['SHOAL_NCCL_LIBRARY']
  const nccl = first('nccl.h', [
    options.ncclInclude,
    process.env['NCCL_INCLUDE'],
    process.env['NCCL_HOME'] ? join(process.env['NCCL_HOME'], 'include') : undefined,
    library ? join(dirname(dirname(library)), 'include') : undefined,
    ...sitePackages().map((folder) => join(folder, 'nvidia/nccl/include')),
    ...(cuda ? [cuda] : []),
    '/usr/include',
  ])
  return { tried, ...(cuda ? { cuda } : {}), ...(nccl ? { nccl } : {}) }
}

/** Folders of Python packages: wheels bring NCCL with its header. */
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

import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

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
  const cudaFolders = homes.flatMap((home) => (home ? [join(home, 'include'), join(home, 'targets/x86_64-linux/include')] : []))
  const cuda = first('cuda.h', [...cudaFolders, '/usr/include'])
  const pythonPath = (process.env['PYTHONPATH'] ?? '').split(delimiter).filter((entry) => entry !== '')
  const nccl = first('nccl.h', [
    options.ncclInclude,
    process.env['NCCL_INCLUDE'],
    process.env['NCCL_HOME'] ? join(process.env['NCCL_HOME'], 'include') : undefined,
    ...pythonPath.map((entry) => join(entry, 'nvidia/nccl/include')),
    ...(cuda ? [cuda] : []),
    '/usr/include',
  ])
  return { tried, ...(cuda ? { cuda } : {}), ...(nccl ? { nccl } : {}) }
}

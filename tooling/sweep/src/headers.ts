// Where the real headers are, and of which version they are.
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import type { LibraryId } from './spec.js'

/** A folder with a library's header, and that header's version as the library counts versions. */
export interface Header {
  readonly folder: string
  readonly version: number
}

const files: Record<LibraryId, string> = {
  driver: 'cuda.h',
  runtime: 'cuda_runtime_api.h',
  nccl: 'nccl.h',
  nvshmem: 'nvshmem_host.h',
}

/**
 * Finds the header of a library: an environment variable, then beside the library's file, then the usual places.
 * @param library the library's file: wheels have their headers in a folder beside it.
 * @param siteFolders folders of Python packages.
 */
export function findHeader(id: LibraryId, library: string, siteFolders: readonly string[]): Header | undefined {
  const environment = process.env
  const homes = [environment['CUDA_HOME'], environment['CUDA_PATH'], '/usr/local/cuda', '/usr/local/cuda-13.0']
  const cuda = [
    ...homes.flatMap((home) => (home ? [join(home, 'include')] : [])),
    ...(environment['PATH'] ?? '')
      .split(delimiter)
      .filter((folder) => existsSync(join(folder, 'nvcc')))
      .map((folder) => join(dirname(folder), 'include')),
    ...siteFolders.map((folder) => join(folder, 'nvidia/cu13/include')),
    '/usr/include',
  ]
  const beside = join(dirname(dirname(library)), 'include')
  const places: Record<LibraryId, (string | undefined)[]> = {
    driver: cuda,
    runtime: cuda,
    nccl: [
      beside,
      environment['NCCL_INCLUDE'],
      environment['NCCL_HOME'] && join(environment['NCCL_HOME'], 'include'),
      '/usr/include',
      ...siteFolders.map((folder) => join(folder, 'nvidia/nccl/include')),
      ...cuda,
    ],
    nvshmem: [
      beside,
      environment['NVSHMEM_HOME'] && join(environment['NVSHMEM_HOME'], 'include'),
      ...siteFolders.map((folder) => join(folder, 'nvidia/nvshmem/include')),
    ],
  }
  const folder = places[id].find((place) => place && existsSync(join(place, files[id])))
  return folder === undefined ? undefined : { folder, version: headerVersion(id, folder) }
}

function headerVersion(id: LibraryId, folder: string): number {
  const read = (file: string, macro: string): number => {
    const path = join(folder, file)
    const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
    return Number(new RegExp(`#define\\s+${macro}\\s+(\\d+)`).exec(text)?.[1] ?? Number.NaN)
  }
  if (id === 'driver') return read('cuda.h', 'CUDA_VERSION')
  if (id === 'runtime') return read('cuda_runtime_api.h', 'CUDART_VERSION')
  if (id === 'nccl') {
    const part = (name: string) => read('nccl.h', name)
    return part('NCCL_MAJOR') * 10_000 + part('NCCL_MINOR') * 100 + part('NCCL_PATCH')
  }
  // NVSHMEM's functions are of one version in the spec; its header has all of them.
  return Number.MAX_SAFE_INTEGER
}

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import type { LibraryName } from '../spec/types.js'

/** What headers come with: those of the driver and the runtime come together. */
export type Product = 'cuda' | 'nccl' | 'nvshmem' | 'nvrtc' | 'nvjitlink'

/** The header that tells that a folder has those of a product. */
export const mainHeaders: Readonly<Record<Product, string>> = {
  cuda: 'cuda.h',
  nccl: 'nccl.h',
  nvshmem: 'nvshmem_host.h',
  nvrtc: 'nvrtc.h',
  nvjitlink: 'nvJitLink.h',
}

/** The folder that holds the main header of each product. */
export interface HeaderLocations extends Partial<Record<Product, string>> {
  /** every folder looked at, with what it was asked for */
  tried: string[]
}

export interface HeaderOptions {
  cudaHome?: string
  ncclInclude?: string
  nvshmemInclude?: string
  nvrtcInclude?: string
  nvjitlinkInclude?: string
  /** file of a NCCL or NVSHMEM whose headers are wanted: packages have them in a folder beside it */
  library?: string
  /** folders of Python packages, besides those in usual places */
  sitePackages?: readonly string[]
}

export function productOf(library: LibraryName): Product {
  return library === 'driver' || library === 'runtime' ? 'cuda' : library
}

/** Finds the headers: option, then environment, then the usual places. */
export function findHeaders(options: HeaderOptions): HeaderLocations {
  const { env } = process
  const locations: HeaderLocations = { tried: [] }
  const first = (product: Product, folders: readonly (string | undefined)[]): void => {
    for (const folder of folders) {
      if (!folder || locations[product]) continue
      const file = join(folder, mainHeaders[product])
      locations.tried.push(file)
      if (existsSync(file)) locations[product] = folder
    }
  }
  const sites = [...sitePackages(), ...(options.sitePackages ?? [])]
  const below = (home: string | undefined) => (home ? join(home, 'include') : undefined)
  const beside = (file: string | undefined) => (file ? join(dirname(dirname(file)), 'include') : undefined)
  const compilers = (env['PATH'] ?? '').split(delimiter).filter((folder) => existsSync(join(folder, 'nvcc')))
  const homes = [options.cudaHome, env['CUDA_HOME'], env['CUDA_PATH'], '/usr/local/cuda', ...compilers.map(dirname)]
  first('cuda', [
    ...homes.flatMap((home) => (home ? [join(home, 'include'), join(home, 'targets/x86_64-linux/include')] : [])),
    ...sites.map((folder) => join(folder, 'nvidia/cu13/include')),
    '/usr/include',
  ])
  first('nccl', [
    options.ncclInclude,
    beside(options.library),
    env['NCCL_INCLUDE'],
    below(env['NCCL_HOME']),
    beside(env['SHOAL_NCCL_LIBRARY']),
    ...sites.map((folder) => join(folder, 'nvidia/nccl/include')),
    locations.cuda,
    '/usr/include',
  ])
  first('nvshmem', [
    options.nvshmemInclude,
    beside(options.library),
    env['NVSHMEM_INCLUDE'],
    below(env['NVSHMEM_HOME']),
    beside(env['SHOAL_NVSHMEM_LIBRARY']),
    ...sites.map((folder) => join(folder, 'nvidia/nvshmem/include')),
    locations.cuda,
    ...['/usr/include', ...versionFolders('/usr/include', /^nvshmem_\d+$/)],
  ])
  // They come with the toolkit, and as wheels that lay their headers among CUDA's.
  for (const product of ['nvrtc', 'nvjitlink'] as const) {
    const library = env[`SHOAL_${product.toUpperCase()}_LIBRARY`]
    first(product, [
      options[`${product}Include`],
      locations.cuda,
      beside(library),
      ...sites.map((folder) => join(folder, 'nvidia/cu13/include')),
    ])
  }
  return locations
}

/** Header with a library's version, and the macros that tell it: a number, or parts of two digits each. */
const versions: Readonly<Record<Exclude<LibraryName, 'nvjitlink'>, readonly [file: string, ...macros: string[]]>> = {
  driver: ['cuda.h', 'CUDA_VERSION'],
  // Its own header does not tell; it comes with this one.
  nvrtc: ['cuda.h', 'CUDA_VERSION'],
  runtime: ['cuda_runtime_api.h', 'CUDART_VERSION'],
  nccl: ['nccl.h', 'NCCL_VERSION_CODE'],
  nvshmem: [
    'non_abi/nvshmem_version.h',
    ...['MAJOR', 'MINOR', 'PATCH'].map((part) => `NVSHMEM_VENDOR_${part}_VERSION`),
  ],
}

/** Version of the headers in a folder, as the library counts versions; NaN where they do not tell. */
export function headerVersion(library: LibraryName, folder: string): number {
  const read = (file: string) => (existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8') : '')
  if (library === 'nvjitlink') {
    // The symbols that its inline functions call are named after the release.
    const [, major, minor] = /__nvJitLinkCreate_(\d+)_(\d+)/.exec(read(mainHeaders.nvjitlink)) ?? []
    return Number(major) * 1000 + Number(minor) * 10
  }
  const [file, ...macros] = versions[library]
  const text = read(file)
  return macros
    .map((macro) => Number(new RegExp(`#define\\s+${macro}\\s+(\\d+)`).exec(text)?.[1]))
    .reduce((version, part) => version * 100 + part)
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

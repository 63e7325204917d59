import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { libraries, libraryRecord, type Product } from '../../../libraries/index.mjs'
import type { LibraryName } from '../spec/types.js'

/** The header that identifies a folder as the headers of a product. */
export const mainHeaders = Object.fromEntries(
  libraries.map(({ headers }) => [headers.product, headers.main]),
) as Readonly<Record<Product, string>>

/** The folder with the main header of each product. */
export interface HeaderLocations extends Partial<Record<Product, string>> {
  /** every folder that was searched, and for which product */
  tried: string[]
}

export interface HeaderOptions {
  cudaHome?: string
  /** header folders, by product */
  includes?: Partial<Record<Product, string>>
  /** the file of the NCCL or NVSHMEM whose headers are wanted; packages put them in a folder next to it */
  library?: string
  /** folders of Python packages, in addition to the usual places */
  sitePackages?: readonly string[]
}

export function productOf(library: LibraryName): Product {
  return libraryRecord(library).headers.product
}

/** Finds the headers: from options, from the environment, then in the usual places. */
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
  for (const { headers, places } of libraries) {
    const { product, variables, wheelFolder, needs } = headers
    if (product === 'cuda') continue
    first(product, [
      options.includes?.[product],
      ...(needs.length > 0 ? [beside(options.library)] : [locations.cuda]),
      ...(variables.include ? [env[variables.include]] : []),
      ...(variables.home ? [below(env[variables.home])] : []),
      beside(env[places.environment]),
      ...sites.map((folder) => join(folder, wheelFolder)),
      locations.cuda,
      '/usr/include',
      ...versionFolders('/usr/include', new RegExp(`^${product}_\\d+$`)),
    ])
  }
  return locations
}

/** The version of the headers in a folder, in the library's numbering, or NaN if it is unknown. */
export function headerVersion(library: LibraryName, folder: string): number {
  const { versionFile, versionPatterns, versionSteps } = libraryRecord(library).headers
  const file = join(folder, versionFile)
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const parts = versionPatterns.map((pattern) => Number(pattern.exec(text)?.[1]))
  return parts.reduce((version, part, index) => version + part * (versionSteps[index] as number), 0)
}

/** Folders of packages that install versions side by side. */
function versionFolders(folder: string, pattern: RegExp): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => pattern.test(name))
    .sort()
    .reverse()
    .map((name) => join(folder, name))
}

/** Folders of Python packages, because wheels contain NCCL and NVSHMEM with their headers. */
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

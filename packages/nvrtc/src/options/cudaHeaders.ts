import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nvrtc } from '@shoal/nvrtc-sys'
import { libraryPath } from '../cache/library.js'

/** A header in every CUDA release. */
const marker = 'cuda_fp16.h'

let known: { readonly library: string; readonly folders: readonly string[] } | undefined

/**
 * Returns the CUDA header folders of the NVRTC in use: in a toolkit, a wheel or a conda environment.
 *
 * Empty if that NVRTC came without headers. @throws LibraryNotFoundError
 */
export function cudaHeaderFolders(): readonly string[] {
  const library = nvrtc.isLoaded ? nvrtc.load().path : libraryPath()
  if (known?.library !== library) known = { library, folders: headerFoldersBeside(library) }
  return known.folders
}

/** Returns the header folders near a library. */
export function headerFoldersBeside(library: string): string[] {
  // A toolkit's lib64 and a conda environment's lib contain links into targets/…/lib.
  const homes = [dirname(realPath(library)), dirname(library)]
  const folders = [...new Set(homes)].flatMap((home) => {
    const [above, twoAbove] = [dirname(home), dirname(dirname(home))]
    return [
      join(above, 'include'),
      join(twoAbove, 'include'),
      ...list(join(above, 'targets')).map((target) => join(above, 'targets', target, 'include')),
      // Each wheel of CUDA 12 has a separate folder.
      join(twoAbove, 'cuda_runtime', 'include'),
    ]
  })
  const found = folders.find((folder) => existsSync(join(folder, marker)))
  if (found === undefined) return []
  const more = [join(found, 'cccl'), join(dirname(dirname(found)), 'cuda_cccl', 'include')]
  return [found, ...more.filter((folder) => existsSync(join(folder, 'cuda', 'std')))]
}

function realPath(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return file // removed since it was loaded
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return [] // no such folder
  }
}

import { Library as BaseLibrary, type LibraryOptions as BaseOptions } from '@shoal/driver/library'
import type { ModuleImage } from '@shoal/driver/shared'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options for loading a library. */
export interface LibraryOptions extends BaseOptions, DeviceOption {}

/**
 * Device code for all devices of the process (`cudaLibrary_t`).
 *
 * @example
 * using library = await Library.loadFile('axpy.ptx')
 * const axpy = library.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
 * axpy.launch({ grid: 4096, block: 256, stream }, 2, x, y, x.length)
 */
export type Library = BaseLibrary
export const Library = withFactories(BaseLibrary, {
  /** Loads code for the current or the given device, on a native thread (`cudaLibraryLoadData`). */
  async load(image: ModuleImage, options: LibraryOptions = {}): Promise<Library> {
    const [owner, rest] = ownerAndRest(options, 'Library.load')
    return await BaseLibrary.load(owner, image, rest)
  },

  /** Loads code like `load`, but blocks the thread. */
  loadSync(image: ModuleImage, options: LibraryOptions = {}): Library {
    const [owner, rest] = ownerAndRest(options, 'Library.loadSync')
    return BaseLibrary.loadSync(owner, image, rest)
  },

  /** Reads a file of PTX, a cubin or a fat binary and loads it like `load`. */
  async loadFile(path: string | URL, options: LibraryOptions = {}): Promise<Library> {
    const [owner, rest] = ownerAndRest(options, 'Library.loadFile')
    return await BaseLibrary.loadFile(owner, path, rest)
  },
})

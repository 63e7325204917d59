import { Library as BaseLibrary, type LibraryOptions as BaseOptions } from '@shoal/driver/library'
import type { ModuleImage } from '@shoal/driver/shared'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How a library is loaded, and the device that it works on. */
export interface LibraryOptions extends BaseOptions, DeviceOption {}

/** Code for all devices of the process (`cudaLibrary_t`). */
export type Library = BaseLibrary
export const Library = withFactories(BaseLibrary, {
  /** Loads code for the current device, or the one named, on a native thread (`cudaLibraryLoadData`). */
  async load(image: ModuleImage, options: LibraryOptions = {}): Promise<Library> {
    const [owner, rest] = ownerAndRest(options, 'Library.load')
    return await BaseLibrary.load(owner, image, rest)
  },

  /** Like `load`, but blocks the thread for as long as it takes. */
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

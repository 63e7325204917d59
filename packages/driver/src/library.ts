/** Driver libraries, which are code for all devices of the process, and the linker. */
export { Library } from './work/library/library.js'
export type { LibraryOptions } from './work/library/loaded.js'
export { moduleLoadingMode } from './work/library/loadingMode.js'
export type { InputKind } from './work/linker/inputs.js'
export { Linker, type LinkerOptions, type LinkInput } from './work/linker/linker.js'

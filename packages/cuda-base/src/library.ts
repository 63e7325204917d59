/** Libraries: what `@shoal/driver/library` and `@shoal/runtime/library` offer. An entry of its own, as few programs need it. */

export { Library } from './library/library.js'
export type { LibraryOptions } from './library/loaded.js'
export { moduleLoadingMode } from './library/loadingMode.js'

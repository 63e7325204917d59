/** The libraries, and the common parts of the entry points `./driver` and `./runtime`. */

export { formatCudaVersion } from '@shoal/types'
export { ensureContextFunctions, withContext } from './driver/context.js'
export { driver } from './driver/library.js'
export { runtime } from './runtime/library.js'

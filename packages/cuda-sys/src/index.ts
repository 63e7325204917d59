/** The libraries themselves and what both entry points share; functions are in `./driver` and `./runtime`. */
export { ensureContextFunctions, withContext } from './driver/context.js'
export { driver } from './driver/library.js'
export { runtime } from './runtime/library.js'
export { formatCudaVersion } from './version.js'

/** The CUDA driver API: functions, constants and struct layouts of cuda.h, and its current context. */
export { ensureContextFunctions, withContext } from './context.js'
export * from './generated/index.gen.js'
export { driver } from './library.js'

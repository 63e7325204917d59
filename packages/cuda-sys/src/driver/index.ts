/** The CUDA driver API: functions, constants and struct layouts of cuda.h. */
export * from './generated/index.gen.js'
export { driver } from './library.js'

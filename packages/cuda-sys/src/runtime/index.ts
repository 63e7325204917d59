/** The CUDA runtime API: functions, constants and struct layouts of cuda_runtime_api.h. */
export * from './generated/index.gen.js'
export { runtime } from './library.js'

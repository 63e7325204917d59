/** Raw cuBLASLt: functions, constants and struct layouts of cublasLt.h. */
export * from './generated/index.gen.js'
export { cublasLt } from './generated/library.gen.js'

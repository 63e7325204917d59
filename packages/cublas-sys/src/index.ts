/** Raw cuBLAS: functions, constants and struct layouts of cublas_v2.h. `./lt` has those of cublasLt.h. */
export * from './generated/index.gen.js'
export { cublas } from './generated/library.gen.js'
export { cublasLt } from './lt/generated/library.gen.js'

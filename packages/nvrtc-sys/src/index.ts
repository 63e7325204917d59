/** Raw NVRTC, CUDA's compiler at run time: the functions and statuses of nvrtc.h. */
export * from './generated/index.gen.js'
export { nvrtc } from './generated/library.gen.js'

/** Raw nvJitLink, CUDA's linker at run time: the functions, statuses and kinds of input of nvJitLink.h. */
export * from './generated/index.gen.js'
export { nvjitlink } from './generated/library.gen.js'

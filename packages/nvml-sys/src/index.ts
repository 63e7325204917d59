/** Raw NVML, NVIDIA's management library: the functions, structs and constants of nvml.h. */
export * from './generated/index.gen.js'
export { nvml } from './generated/library.gen.js'

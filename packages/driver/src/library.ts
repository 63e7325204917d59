/** Libraries of the driver, which are code for all devices of the process, and the linker. */
export * from '@shoal/cuda-base/library'
export type { InputKind } from './linker/inputs.js'
export { Linker, type LinkerOptions, type LinkInput } from './linker/linker.js'

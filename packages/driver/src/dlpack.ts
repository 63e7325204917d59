/**
 * DLPack tensors from memory, and memory from tensors: the entries `@shoal/driver/dlpack` and `@shoal/runtime/dlpack`.
 * A separate entry, because few programs need it.
 */
export { DLPackTensor, type FromDLPackOptions, fromDLPack } from './memory/dlpack/fromDLPack.js'
export type { TensorDeviceType } from './memory/dlpack/tensorTypes.js'
export { DLPackCapsule, type ToDLPackOptions, toDLPack } from './memory/dlpack/toDLPack.js'

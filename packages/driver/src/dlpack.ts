/**
 * Memory as tensors of DLPack, and tensors as memory: what `@shoal/driver/dlpack` and `@shoal/runtime/dlpack` offer. An
 * entry of its own, as few programs need it.
 */
export { DLPackTensor, type FromDLPackOptions, fromDLPack } from './memory/dlpack/fromDLPack.js'
export type { TensorDeviceType } from './memory/dlpack/tensorTypes.js'
export { DLPackCapsule, type ToDLPackOptions, toDLPack } from './memory/dlpack/toDLPack.js'

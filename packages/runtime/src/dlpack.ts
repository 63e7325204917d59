/** Converts memory to DLPack tensors, and tensors to memory. */
export * from '@shoal/driver/dlpack'

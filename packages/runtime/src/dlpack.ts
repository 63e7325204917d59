/** Memory as tensors of DLPack, and tensors as memory. */
export * from '@shoal/driver/dlpack'

/** Contexts beside the primary ones, and parts of a device. */
export * from '@shoal/cuda-base/context'

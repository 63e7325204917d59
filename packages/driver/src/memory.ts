/** Memory beyond buffers: in two and three dimensions, and many prefetches in one call. */
export * from '@shoal/cuda-base/memory'

/** Graphs of the driver: work with its order, built once and launched many times. */
export * from '@shoal/cuda-base/graph'

/**
 * What the safe packages use of the CUDA driver API, and the state of its library: the only part of `@shoal/cuda-sys` that is installed
 * with them. For these packages alone; programs import `@shoal/cuda-sys/driver`.
 */
export * from '@shoal/cuda-sys/driver/common'

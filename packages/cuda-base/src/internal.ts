/** Everything, what safe packages use of the driver, and `internal-basics`: the one import of the bundles of driver and runtime. */
export * from '@shoal/cuda-sys/driver/common'
export * from './index.js'
export * from './internalBasics.js'

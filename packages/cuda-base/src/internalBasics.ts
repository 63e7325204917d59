/**
 * `basics` with all that its files have, the state of the driver's library, and all of `@shoal/ffi/internal`: the one import of the
 * bundles of nccl and nvshmem.
 */
export { driver, ensureContextFunctions, withContext } from '@shoal/cuda-sys/driver/common'
export * from '@shoal/ffi/internal'
export * from './basics.js'
export * from './context/capturing.js'
export * from './context/keptByCaptures.js'
export * from './context/peers.js'
export * from './context/primaryContexts.js'
export * from './context/releases.js'
export * from './errors.js'
export * from './inUse.js'
export * from './lifetime.js'
export * from './memory/arrayBytes.js'
export * from './memory/copyInSlices.js'
export * from './memory/pinnedRegistry.js'
export * from './memory/reach.js'
export * from './memory/span.js'
export * from './native.js'
export * from './releasing.js'
export * from './stream/boundStream.js'
export * from './stream/orderBehind.js'

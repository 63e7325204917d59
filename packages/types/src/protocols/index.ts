export * from './device.js'
export { contiguousStrides, type Layout, spanOf } from './layout.js'
export * from './memory.js'
export * from './stream.js'

export * from './device.js'
export * from './memory.js'
export * from './stream.js'

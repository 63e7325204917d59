/** What the safe CUDA packages share. Programs use `@shoal/driver` or `@shoal/runtime`. */
export * from './checks.js'
export * from './context.js'
export * from './deviceInUse.js'
export * from './errors.js'
export * from './lifetime.js'
export * from './native.js'
export * from './start.js'

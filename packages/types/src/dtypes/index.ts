export * from './dtype.js'

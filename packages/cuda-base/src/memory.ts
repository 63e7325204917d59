/**
 * Memory beyond buffers: what `@shoal/driver/memory` and `@shoal/runtime/memory` offer. An entry of its own, as few programs
 * need it.
 */
export { type BatchedPrefetch, discardBatch, type PrefetchOptions, prefetchBatch } from './managed/batches.js'
export {
  type Extent,
  PitchedBuffer,
  type PitchedOptions,
  type PitchedSource,
  type Region,
} from './pitched/pitchedBuffer.js'

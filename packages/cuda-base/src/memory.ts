/**
 * Memory beyond buffers: what `@shoal/driver/memory` and `@shoal/runtime/memory` offer. An entry of its own, as few programs
 * need it.
 */
export { type BatchedPrefetch, discardBatch, type PrefetchOptions, prefetchBatch } from './managed/batches.js'
export type { Extent, PitchedOptions, Region } from './pitched/extent.js'
export { PitchedBuffer, type PitchedSource } from './pitched/pitchedBuffer.js'
export { type BatchedCopy3D, prepareCopies3D } from './pitched/preparedCopies3D.js'

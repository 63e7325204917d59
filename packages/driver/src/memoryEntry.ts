/**
 * Memory other than buffers: the entries `@shoal/driver/memory` and `@shoal/runtime/memory`. A separate entry, because
 * few programs need it.
 */
export { type BatchedPrefetch, discardBatch, type PrefetchOptions, prefetchBatch } from './memory/managed/batches.js'
export type { Extent, PitchedOptions, Region } from './memory/pitched/extent.js'
export { PitchedBuffer, type PitchedSource } from './memory/pitched/pitchedBuffer.js'
export { type BatchedCopy3D, prepareCopies3D } from './work/texture/preparedCopies3D.js'

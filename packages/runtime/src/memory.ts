/** Memory beyond buffers: in two and three dimensions, and many prefetches in one call. */
export type { BatchedCopy3D, BatchedPrefetch, Extent, PitchedSource, Region } from '@shoal/driver/memory'
export { discardBatch, type PrefetchOptions, prefetchBatch } from './managed/batches.js'
export { PitchedBuffer, type PitchedOptions } from './pitched/pitchedBuffer.js'
export { prepareCopies3D } from './pitched/preparedCopies3D.js'

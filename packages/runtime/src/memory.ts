/** Two- and three-dimensional memory, and batches of prefetches. */
export type { BatchedCopy3D, BatchedPrefetch, Extent, PitchedSource, Region } from '@shoal/driver/memory'
export { discardBatch, type PrefetchOptions, prefetchBatch } from './managed/batches.js'
export { PitchedBuffer, type PitchedOptions } from './pitched/pitchedBuffer.js'
export { prepareCopies3D } from './pitched/preparedCopies3D.js'

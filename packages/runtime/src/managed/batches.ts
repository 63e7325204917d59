import {
  type PrefetchOptions as BaseOptions,
  type BatchedPrefetch,
  discardBatch as discardOn,
  prefetchBatch as prefetchOn,
} from '@shoal/driver/memory'
import type { QueueOptions } from '@shoal/driver/shared'
import type { MemoryLike } from '@shoal/types'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'

/** Where prefetches are queued, and what becomes of the contents. */
export interface PrefetchOptions extends BaseOptions, DeviceOption {}

/**
 * Queues the moves of many pieces of managed memory, each to a place of its own, in one call
 * (`cudaMemPrefetchBatchAsync`).
 * @param options `stream` must be given, one of the current device or of the one named.
 * @throws TypeError, RangeError; DisposedError, StatusError; VersionTooOldError before CUDA 13.0
 */
export function prefetchBatch(prefetches: readonly BatchedPrefetch[], options: PrefetchOptions): void {
  const [owner, rest] = ownerAndRest(options, 'prefetchBatch')
  prefetchOn(owner, prefetches, rest)
}

/**
 * Says that the contents of managed memory are not needed any more (`cudaMemDiscardBatchAsync`). @throws as
 * {@link prefetchBatch}
 */
export function discardBatch(memories: readonly MemoryLike[], options: QueueOptions & DeviceOption): void {
  const [owner, rest] = ownerAndRest(options, 'discardBatch')
  discardOn(owner, memories, rest)
}

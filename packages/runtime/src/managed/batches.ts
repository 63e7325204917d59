import {
  type PrefetchOptions as BaseOptions,
  type BatchedPrefetch,
  discardBatch as discardOn,
  prefetchBatch as prefetchOn,
} from '@shoal/driver/memory'
import type { QueueOptions } from '@shoal/driver/shared'
import type { MemoryLike } from '@shoal/types'
import { type DeviceOption, ownerAndRest } from '../device/currentDevice.js'

/** Options of {@link prefetchBatch}. */
export interface PrefetchOptions extends BaseOptions, DeviceOption {}

/**
 * Queues prefetches of many pieces of managed memory in one call (`cudaMemPrefetchBatchAsync`).
 *
 * Each piece has its own destination.
 * @param options `stream` is required; it must belong to the current or the given device.
 * @throws TypeError, RangeError; DisposedError, StatusError; VersionTooOldError before CUDA 13.0
 */
export function prefetchBatch(prefetches: readonly BatchedPrefetch[], options: PrefetchOptions): void {
  const [owner, rest] = ownerAndRest(options, 'prefetchBatch')
  prefetchOn(owner, prefetches, rest)
}

/**
 * Declares the contents of managed memory as unneeded (`cudaMemDiscardBatchAsync`).
 *
 * @throws as {@link prefetchBatch}
 */
export function discardBatch(memories: readonly MemoryLike[], options: QueueOptions & DeviceOption): void {
  const [owner, rest] = ownerAndRest(options, 'discardBatch')
  discardOn(owner, memories, rest)
}

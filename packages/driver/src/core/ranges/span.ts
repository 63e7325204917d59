import { type MemoryLike, type MemoryRange, propertyOf, toMemoryRange } from '@shoal/types'

/** Memory with gaps, which says by itself how far it reaches. */
interface WithGaps extends MemoryLike {
  readonly _span: MemoryRange
}

/** By what it has: entries that ask do not load the class. */
export function hasGaps(value: unknown): value is WithGaps {
  return typeof value === 'object' && value !== null && propertyOf(value, '_hasGaps') === true
}

/**
 * From the first byte to the last, for what is told by other means how rows lie there, or need not know: a kernel, a
 * view, a texture. What takes elements asks `toMemoryRange`, which refuses a region with elements of others between its
 * rows.
 * @throws as `toMemoryRange`
 */
export function toSpan(memory: MemoryLike, api: string, name?: string): MemoryRange {
  return hasGaps(memory) ? memory._span : toMemoryRange(memory, api, name)
}

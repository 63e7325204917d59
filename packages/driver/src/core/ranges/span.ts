import { type MemoryLike, type MemoryRange, propertyOf, toMemoryRange } from '@shoal/types'

/** Memory with gaps between its rows. The object itself reports the whole range. */
interface WithGaps extends MemoryLike {
  readonly _span: MemoryRange
}

/** Whether memory has gaps. Checks for a property, so that callers do not load the class. */
export function hasGaps(value: unknown): value is WithGaps {
  return typeof value === 'object' && value !== null && propertyOf(value, '_hasGaps') === true
}

/**
 * Returns the range from the first byte to the last, including gaps. For callers that know the layout of the rows or do
 * not need it: kernels, views, textures. Callers that need contiguous elements use `toMemoryRange`, which refuses
 * memory with foreign elements between its rows.
 * @throws as `toMemoryRange`
 */
export function toSpan(memory: MemoryLike, api: string, name?: string): MemoryRange {
  return hasGaps(memory) ? memory._span : toMemoryRange(memory, api, name)
}

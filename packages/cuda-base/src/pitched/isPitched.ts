import { type ElementType, type MemoryLike, type MemoryRange, propertyOf, toMemoryRange } from '@shoal/types'
import type { PitchedBuffer } from './pitchedBuffer.js'

/** Whether a value is pitched memory, by what it has: entries that ask do not load its class. */
export function isPitched(value: unknown): value is PitchedBuffer<ElementType> {
  return typeof value === 'object' && value !== null && propertyOf(value, '_isPitched') === true
}

/**
 * From the first byte to the last, for what is told by other means how rows lie there, or need not know: a kernel, a view, a
 * texture. What takes elements asks `toMemoryRange`, which refuses a region with elements of others between its rows.
 * @throws as `toMemoryRange`
 */
export function toSpan(memory: MemoryLike, api: string, name?: string): MemoryRange {
  return isPitched(memory) ? memory._span : toMemoryRange(memory, api, name)
}

import type { ElementType } from '@shoal/types'
import { hasGaps } from '../../core/ranges/span.js'
import type { PitchedBuffer } from './pitchedBuffer.js'

/** Whether a value is pitched memory, the only kind with gaps. */
export function isPitched(value: unknown): value is PitchedBuffer<ElementType> {
  return hasGaps(value)
}

import type { CUevent } from '@shoal/cuda-sys/driver'
import { loadedFrom, otherCopy, propertyOf, wrongType } from '@shoal/types'
import type { Context } from './context.js'
import { ContextLifetime } from './contextLifetime.js'

/** An event of `driver` or `runtime`. A `CUevent` and a `cudaEvent_t` are the same handle. */
export interface EventLike {
  /** Handle of the event. @throws DisposedError */
  readonly handle: CUevent
  /** The context of the event. */
  readonly context: Context
  /** Whether the event records the time. */
  readonly timing: boolean
}

/** Returns a checked event. @throws TypeError for other values; DisposedError */
export function requireEventLike(value: unknown, api: string, name = 'event'): EventLike {
  const context = typeof value === 'object' ? propertyOf(value, 'context') : undefined
  const event = value as EventLike
  if (context instanceof ContextLifetime && typeof event.timing === 'boolean' && typeof event.handle === 'bigint')
    return event
  // Importing the class would be a circular import, because the class takes events.
  const contextClass = { name: 'Context', [loadedFrom]: ContextLifetime[loadedFrom] }
  throw otherCopy(context, api, name, contextClass) ?? wrongType(api, name, 'an Event', value)
}

/** Returns a checked event with timing. @throws TypeError for an event that does not record the time */
export function requireTimedEvent(value: unknown, api: string, name: string): EventLike {
  const event = requireEventLike(value, api, name)
  if (!event.timing) throw wrongType(api, name, 'an Event made with { timing: true }', value)
  return event
}

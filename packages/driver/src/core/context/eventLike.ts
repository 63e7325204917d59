import type { CUevent } from '@shoal/cuda-sys/driver'
import { loadedFrom, otherCopy, propertyOf, wrongType } from '@shoal/types'
import type { Context } from './context.js'
import { ContextLifetime } from './contextLifetime.js'

/** An event of `driver` or of `runtime`: a `CUevent` and a `cudaEvent_t` are the same handle. */
export interface EventLike {
  /** @throws DisposedError */
  readonly handle: CUevent
  /** The context it is of. */
  readonly context: Context
  /** Whether it records the time. */
  readonly timing: boolean
}

/** @throws TypeError for what is no event; DisposedError. */
export function requireEventLike(value: unknown, api: string, name = 'event'): EventLike {
  const context = typeof value === 'object' ? propertyOf(value, 'context') : undefined
  const event = value as EventLike
  if (context instanceof ContextLifetime && typeof event.timing === 'boolean' && typeof event.handle === 'bigint')
    return event
  // The class itself cannot be named here: it takes events.
  const contextClass = { name: 'Context', [loadedFrom]: ContextLifetime[loadedFrom] }
  throw otherCopy(context, api, name, contextClass) ?? wrongType(api, name, 'an Event', value)
}

/** @throws TypeError for an event that was made without timing. */
export function requireTimedEvent(value: unknown, api: string, name: string): EventLike {
  const event = requireEventLike(value, api, name)
  if (!event.timing) throw wrongType(api, name, 'an Event made with { timing: true }', value)
  return event
}

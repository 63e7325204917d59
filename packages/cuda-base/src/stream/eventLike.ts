import type { CUevent } from '@shoal/cuda-sys/driver'
import { describeValue } from '@shoal/types'
import { Context } from '../context.js'

/** An event of `driver` or of `runtime`: a `CUevent` and a `cudaEvent_t` are the same handle. */
export interface EventLike {
  /** @throws DisposedError */
  readonly handle: CUevent
  readonly context: Context
  /** Whether it records the time. */
  readonly timing: boolean
}

/** @throws TypeError for what is no event; DisposedError. */
export function requireEventLike(value: unknown, name = 'event'): EventLike {
  const event = value as Partial<EventLike> | null | undefined
  const isEvent = typeof event === 'object' && event !== null && event.context instanceof Context && 'timing' in event
  if (!isEvent || typeof event.handle !== 'bigint') {
    throw new TypeError(`${name} must be an Event, not ${describeValue(value)}`)
  }
  return event as EventLike
}

/** @throws TypeError for an event that was made without timing. */
export function requireTimedEvent(value: unknown, name: string): EventLike {
  const event = requireEventLike(value, name)
  if (!event.timing) throw new TypeError(`${name} was made without timing; make it with { timing: true }`)
  return event
}

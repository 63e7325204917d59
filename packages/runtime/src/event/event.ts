import {
  Event as BaseEvent,
  type EventOptions as BaseOptions,
  type EventLike,
  requireEventLike,
} from '@shoal/driver/shared'
import { type DeviceOption, deviceOrCurrent, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How an event is made. */
export interface EventOptions extends BaseOptions, DeviceOption {}

/** A mark in the work of a stream: it is reached when everything queued before it has ended. */
export type Event = BaseEvent
export const Event = withFactories(BaseEvent, {
  /** Makes an event on the current device, or the one named (`cudaEventCreateWithFlags`). */
  create(options: EventOptions = {}): Event {
    return BaseEvent.create(...ownerAndRest(options, 'Event.create'))
  },

  /**
   * An event of `@shoal/driver` as one of this package: a `CUevent` and a `cudaEvent_t` are the same handle, and the
   * other object keeps it. @throws TypeError for what is no event, or not of a primary context; DisposedError.
   */
  from(event: EventLike): Event {
    const { context } = requireEventLike(event, 'Event.from')
    return BaseEvent.from(deviceOrCurrent(context.device, 'Event.from'), event)
  },
})

import {
  Event as BaseEvent,
  type EventOptions as BaseOptions,
  type EventLike,
  requireEventLike,
} from '@shoal/driver/shared'
import { type DeviceOption, deviceOrCurrent, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of an event. */
export interface EventOptions extends BaseOptions, DeviceOption {}

/**
 * A marker in a stream, reached when all work queued before it has completed.
 *
 * @example
 * using start = Event.create({ timing: true })
 * using end = Event.create({ timing: true })
 * stream.record(start)
 * x.fill(0, { stream })
 * stream.record(end)
 * await end.synchronize()
 * console.log(elapsedMs(start, end))
 */
export type Event = BaseEvent
export const Event = withFactories(BaseEvent, {
  /** Creates an event on the current or the given device (`cudaEventCreateWithFlags`). */
  create(options: EventOptions = {}): Event {
    return BaseEvent.create(...ownerAndRest(options, 'Event.create'))
  },

  /**
   * Returns an event of `@shoal/driver` as an event of this package.
   *
   * A `CUevent` and a `cudaEvent_t` are the same handle; the other object still owns it.
   * @throws TypeError for a value that is not an event, or not of a primary context; DisposedError.
   */
  from(event: EventLike): Event {
    const { context } = requireEventLike(event, 'Event.from')
    return BaseEvent.from(deviceOrCurrent(context.device, 'Event.from'), event)
  },
})

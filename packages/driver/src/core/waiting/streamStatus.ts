import type { BackgroundWork } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { recordMark } from './eventCalls.js'
import { giveBack, type StreamQueue } from './unmarkedWork.js'
import { eventStatus, hasEndedNow } from './wait.js'

/**
 * Records an event on the stream and resolves with its final status: success, or the context's error. The promise never
 * rejects because of the device, so the caller may ignore it.
 */
export function streamStatus(context: Context, queue: StreamQueue, background?: BackgroundWork): Promise<number> {
  const event = context._events.take()
  try {
    recordMark(context, event, queue._halves)
  } catch (error) {
    context._events.giveBack(event)
    throw error
  }
  const uses = queue._unmarked?.take()
  const whenOver = (isKnown: boolean): void => {
    context._events.giveBack(event)
    if (uses !== undefined) giveBack(context, uses, isKnown || hasEndedNow(context, queue._handle))
  }
  return eventStatus(context, event, whenOver, background)
}

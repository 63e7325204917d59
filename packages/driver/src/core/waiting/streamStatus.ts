import type { BackgroundWork } from '@shoal/ffi'
import type { Context } from '../context/context.js'
import { recordMark } from './eventCalls.js'
import { giveBack, type StreamQueue } from './unmarkedWork.js'
import { eventStatus, hasEndedNow } from './wait.js'

/**
 * Records an event on the stream now and resolves with its final status: what was queued so far has ended, or the
 * context has failed. Never rejects because of the GPU, so it may be left unobserved.
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

import { cuEventDestroy, cuEventSynchronize } from '@shoal/cuda-sys/driver'
import { eventBehind } from '@shoal/driver/basics'
import type { CallResult } from '@shoal/ffi'
import { checkCuda } from '../errors.js'
import type { CallOptions } from './callQueue.js'
import type { LiveSession } from './liveSession.js'

/** The stream of an operand's producer, if it has one. */
export type Pending = bigint | null | undefined

/**
 * Runs a call without a stream after the operand's producer, on the session's thread.
 *
 * @throws as `CallQueue.run`; StatusError if the producer's stream is invalid
 */
export function runBehind(
  live: LiveSession,
  pending: Pending,
  api: string,
  record: () => void,
  options: CallOptions,
): Promise<CallResult[]> {
  return pending === undefined || pending === null
    ? live.queue.run(api, record, options)
    : runBehindStream(live, pending, api, record, options)
}

async function runBehindStream(
  live: LiveSession,
  pending: bigint,
  api: string,
  record: () => void,
  options: CallOptions,
): Promise<CallResult[]> {
  const event = eventBehind(live.context, pending)
  let isOurs = true
  const destroy = (): void => {
    if (isOurs) cuEventDestroy(event)
    isOurs = false
  }
  try {
    const [waited, , ...results] = await live.queue.run(
      api,
      () => {
        // After a cancellation, do not wait for the producer.
        if (isOurs) cuEventSynchronize(event)
        destroy()
        record()
      },
      options,
    )
    checkCuda(waited, 'cuEventSynchronize')
    return results
  } finally {
    destroy()
  }
}

/** Like {@link runBehind}, for a call that blocks this thread. */
export function callSyncBehind(live: LiveSession, pending: Pending, api: string, call: () => void): void {
  if (pending === undefined || pending === null) {
    live.queue.callSync(api, call)
    return
  }
  live.queue.callSync(api, () => {
    const event = eventBehind(live.context, pending)
    live.queue.enter()
    const status = cuEventSynchronize(event)
    cuEventDestroy(event)
    checkCuda(status, 'cuEventSynchronize')
    live.queue.enter()
    call()
  })
}

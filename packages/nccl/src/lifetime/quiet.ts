import { cuCtxSynchronize, driver } from '@shoal/cuda-sys/driver'
import { type BackgroundWork, offThread } from '@shoal/ffi'
import { type LiveCommunicator, requireAlive } from './live.js'
import { onAbort } from './onAbort.js'
import { whenContextDone } from './streamWait.js'

/**
 * Waits until the device has done its work, before memory is taken away from it that the work may use. The communicator
 * can be used meanwhile, and aborted.
 *
 * @param ending fires when the communicator is aborted.
 * @throws CommunicatorAbortedError when it is.
 */
export async function whenQuiet(live: LiveCommunicator, operation: string, ending: AbortSignal): Promise<void> {
  const wait = async (background: BackgroundWork): Promise<void> => {
    const done = driver.has('cuCtxRecordEvent', 12050)
      ? whenContextDone(live.context, background, ending)
      : whenSynchronized(live.context, background, ending)
    // A context that has failed has ended its work too.
    await done.catch(() => undefined)
    requireAlive(live, operation)
  }
  await (live.guard === undefined ? wait({}) : live.guard(operation, wait, {}))
}

/** On a thread of its own, which goes on when the wait is ended: an abort ends the work. */
function whenSynchronized(context: bigint, background: BackgroundWork, ending: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const unsubscribe = onAbort(ending, () => {
      background.release?.()
      resolve()
    })
    offThread({ context, background }, () => {
      cuCtxSynchronize()
    })
      .then(() => resolve(), reject)
      .finally(unsubscribe)
  })
}

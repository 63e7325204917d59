import type { BackgroundWork } from '@shoal/ffi'
import { type LiveCommunicator, requireAlive } from './live.js'
import { whenContextDone } from './streamWait.js'

/**
 * Waits until the device has done its work, before memory is taken away from it that the work may use. The communicator
 * can be used meanwhile, and aborted.
 *
 * @param ending fires when the communicator is aborted.
 * @throws CommunicatorAbortedError when it is.
 */
export async function whenDeviceIdle(live: LiveCommunicator, operation: string, ending: AbortSignal): Promise<void> {
  const wait = async (background: BackgroundWork): Promise<void> => {
    // A context that has failed has ended its work too.
    await whenContextDone(live.context, background, ending).catch(() => undefined)
    requireAlive(live, operation)
  }
  await live.guard(operation, wait, {})
}

import type { BackgroundWork } from '@shoal/ffi'
import { type LiveCommunicator, requireAlive } from './live.js'
import { whenContextDone } from './streamWait.js'

/**
 * Waits until the device is idle, before memory that its work may use is freed.
 *
 * The communicator can be used and aborted meanwhile.
 *
 * @param ending fires when the communicator is aborted.
 * @throws CommunicatorAbortedError if it is aborted.
 */
export async function whenDeviceIdle(live: LiveCommunicator, operation: string, ending: AbortSignal): Promise<void> {
  const wait = async (background: BackgroundWork): Promise<void> => {
    // A failed context has no more work either.
    await whenContextDone(live.context, background, ending).catch(() => undefined)
    requireAlive(live, operation)
  }
  await live.guard(operation, wait, {})
}

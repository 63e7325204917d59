import { setTimeout as sleep } from 'node:timers/promises'
import { ncclCommGetAsyncError, ncclResult_t } from '@shoal/nccl-sys'
import { checkNccl, ncclError } from './errors.js'
import { type LiveCommunicator, requireAlive } from './live.js'

const longestPause = 5

/**
 * Waits until a non-blocking communicator has done what a call left in progress (`ncclCommGetAsyncError`).
 *
 * @throws StatusError when it failed, DisposedError when the communicator ends meanwhile.
 */
export async function untilSettled(live: LiveCommunicator, operation: string): Promise<void> {
  const out = new Int32Array(1)
  for (let pause = 0; ; pause = Math.min(pause + 1, longestPause)) {
    requireAlive(live, operation)
    checkNccl(ncclCommGetAsyncError(live.handle, out), 'ncclCommGetAsyncError', live.handle)
    const status = out[0] ?? 0
    if (status === 0) return
    if (status !== ncclResult_t.ncclInProgress) throw ncclError(status, operation, live.handle)
    await sleep(pause)
  }
}

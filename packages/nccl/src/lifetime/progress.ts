import { ncclResult_t } from '@shoal/nccl-sys'
import { ncclError } from '../errors.js'
import { asyncStatus, whenSettled } from './asyncStatus.js'
import { type LiveCommunicator, requireAlive } from './live.js'

/**
 * Waits until a non-blocking communicator has done what a call left in progress (`ncclCommGetAsyncError`).
 *
 * @throws StatusError when it failed, DisposedError when the communicator ends meanwhile.
 */
export async function untilSettled(live: LiveCommunicator, operation: string): Promise<void> {
  const status = await whenSettled(
    () => asyncStatus(live.handle),
    () => live.ended !== undefined,
  )
  requireAlive(live, operation)
  if (status !== undefined && status !== ncclResult_t.ncclSuccess) throw ncclError(status, operation, live.handle)
}

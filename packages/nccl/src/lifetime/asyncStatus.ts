import { type ncclComm_t, ncclCommGetAsyncError, ncclResult_t } from '@shoal/nccl-sys'
import { checkNccl } from '../errors.js'

const out = new Int32Array(1)

/** What NCCL has to say of a communicator: `ncclSuccess`, `ncclInProgress` or the error behind earlier calls. */
export function asyncStatus(communicator: ncclComm_t): number {
  checkNccl(ncclCommGetAsyncError(communicator, out), 'ncclCommGetAsyncError', communicator)
  return out[0] as number
}

const eagerTurns = 16
const longestPause = 20

/**
 * Asks until `read` no longer answers `ncclInProgress`, or `isOver`; then undefined. Eager at first, because NCCL starts
 * most operations within microseconds; afterwards every few milliseconds, so that a long wait costs next to nothing.
 */
export async function whenSettled(read: () => number, isOver: () => boolean): Promise<number | undefined> {
  for (let turn = 0; !isOver(); turn += 1) {
    const status = read()
    if (status !== ncclResult_t.ncclInProgress) return status
    await pause(turn)
  }
  return undefined
}

function pause(turn: number): Promise<void> {
  return new Promise((resolve) => {
    if (turn < eagerTurns) setImmediate(resolve)
    else setTimeout(resolve, Math.min(longestPause, 1 + (turn - eagerTurns) / 8))
  })
}

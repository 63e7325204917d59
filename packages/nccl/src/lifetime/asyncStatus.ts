import { nextTurn } from '@shoal/ffi'
import { type ncclComm_t, ncclCommGetAsyncError, ncclResult_t } from '@shoal/nccl-sys'
import { AbortedError } from '@shoal/types'
import { checkNccl, ncclError } from '../errors.js'

const out = new Int32Array(1)

/** Returns a communicator's state: `ncclSuccess`, `ncclInProgress` or the error of an earlier call. */
export function asyncStatus(communicator: ncclComm_t): number {
  checkNccl(ncclCommGetAsyncError(communicator, out), 'ncclCommGetAsyncError', communicator)
  return out[0] as number
}

const eagerTurns = 16
const longestPause = 20

/**
 * Waits for NCCL's background work for a communicator. Returns its final status; undefined if `isOver`.
 *
 * `handleOf` returns 0n until NCCL has made the handle. It polls quickly at first, because NCCL starts most operations
 * within microseconds, then every few milliseconds, so that a long wait costs little.
 */
export async function whenSettled(handleOf: () => ncclComm_t, isOver: () => boolean): Promise<number | undefined> {
  for (let turn = 0; !isOver(); turn += 1) {
    const handle = handleOf()
    const status = handle === 0n ? ncclResult_t.ncclInProgress : asyncStatus(handle)
    if (status !== ncclResult_t.ncclInProgress) return status
    await pause(turn)
  }
  return undefined
}

/**
 * Waits until a nonblocking communicator has completed the call `api`.
 *
 * @throws StatusError if it failed; AbortedError if `isOver`. The code that ended the communicator reports the reason.
 */
export async function untilSettled(handleOf: () => ncclComm_t, api: string, isOver: () => boolean): Promise<void> {
  const status = await whenSettled(handleOf, isOver)
  if (status === undefined) throw new AbortedError(api)
  if (status !== ncclResult_t.ncclSuccess) throw ncclError(status, api, handleOf())
}

function pause(turn: number): Promise<void> {
  return nextTurn(turn < eagerTurns ? undefined : Math.min(longestPause, 1 + (turn - eagerTurns) / 8))
}

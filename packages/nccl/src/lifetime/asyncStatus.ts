import { nextTurn } from '@shoal/ffi'
import { type ncclComm_t, ncclCommGetAsyncError, ncclResult_t } from '@shoal/nccl-sys'
import { AbortedError } from '@shoal/types'
import { checkNccl, ncclError } from '../errors.js'

const out = new Int32Array(1)

/** What NCCL has to say of a communicator: `ncclSuccess`, `ncclInProgress` or the error behind earlier calls. */
export function asyncStatus(communicator: ncclComm_t): number {
  checkNccl(ncclCommGetAsyncError(communicator, out), 'ncclCommGetAsyncError', communicator)
  return out[0] as number
}

const eagerTurns = 16
const longestPause = 20

/**
 * Waits while NCCL works in the background for a communicator; gives the status it ends with, undefined when `isOver`.
 * `handleOf` gives 0n while NCCL has no handle yet. Asks eagerly at first, because NCCL starts most operations within
 * microseconds; afterwards every few milliseconds, so that a long wait costs next to nothing.
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
 * Waits until a communicator that does not block has done what the call `api` left in progress.
 *
 * @throws StatusError when that failed; AbortedError when `isOver`, and then whoever ended it tells the caller why.
 */
export async function untilSettled(handleOf: () => ncclComm_t, api: string, isOver: () => boolean): Promise<void> {
  const status = await whenSettled(handleOf, isOver)
  if (status === undefined) throw new AbortedError(api)
  if (status !== ncclResult_t.ncclSuccess) throw ncclError(status, api, handleOf())
}

function pause(turn: number): Promise<void> {
  return nextTurn(turn < eagerTurns ? undefined : Math.min(longestPause, 1 + (turn - eagerTurns) / 8))
}

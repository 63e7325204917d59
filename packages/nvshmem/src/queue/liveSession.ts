import type { RecentTransfers } from '../rma/recentTransfers.js'
import type { HeapRoom } from '../workarounds/heapRoom.js'
import type { CallQueue } from './callQueue.js'

/** What the parts of a session need to know of it. */
export interface LiveSession {
  readonly queue: CallQueue
  readonly deviceOrdinal: number
  /** Primary context of the device. */
  readonly context: bigint
  /** This process's PE. */
  readonly pe: number
  readonly peCount: number
  /** Looks for room before NVSHMEM allocates; undefined where that is left to NVSHMEM. */
  readonly room: HeapRoom | undefined
  /** Bytes that each team has for reductions under way; undefined where any number of elements comes out right. */
  readonly scratch: number | undefined
  /** The last transfers that were queued on streams, where they may be recognised. */
  readonly recent: RecentTransfers
  /** Operands of transfers that were only started, which stay reachable until these have ended. */
  readonly untilQuiet: Set<object>
  /** Ends what keeps memory that NVSHMEM knows from being freed: called when the session has ended. */
  readonly registered: Set<() => void>
  /** Whether the session has ended. */
  isOver(): boolean
  /** Throws DisposedError once the session has ended. */
  requireOpen(operation: string): void
}

/** What an operation of `Session` does once that is known to be open; what it throws becomes a rejection. */
export function whenOpen<T>(live: LiveSession, operation: string, run: () => Promise<T>): Promise<T> {
  try {
    live.requireOpen(`Session.${operation}`)
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}

import type { RecentTransfers } from '../rma/recentTransfers.js'
import type { HeapRoom } from '../workarounds/heapRoom.js'
import type { CallQueue } from './callQueue.js'

/** The state of a session that its parts share. */
export interface LiveSession {
  readonly queue: CallQueue
  readonly deviceOrdinal: number
  /** Primary context of the device. */
  readonly context: bigint
  /** This process's PE. */
  readonly pe: number
  readonly peCount: number
  /** Checks for room before NVSHMEM allocates; undefined if NVSHMEM checks itself. */
  readonly room: HeapRoom | undefined
  /** Scratch bytes per team for reductions; undefined if this NVSHMEM reduces any number of elements correctly. */
  readonly scratch: number | undefined
  /** The last checked transfers on streams, to recognize repeated ones. */
  readonly recent: RecentTransfers
  /** Operands of started transfers, kept reachable until the transfers have completed. */
  readonly untilQuiet: Set<object>
  /** Functions that release registered memory; called when the session has ended. */
  readonly registered: Set<() => void>
  /** Whether the session has ended. */
  isOver(): boolean
  /** Throws DisposedError once the session has ended. */
  requireOpen(operation: string): void
}

/** Runs an operation of an open session. Exceptions become rejections. */
export function whenOpen<T>(live: LiveSession, operation: string, run: () => Promise<T>): Promise<T> {
  try {
    live.requireOpen(`Session.${operation}`)
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}

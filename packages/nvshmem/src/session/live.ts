import type { HeapRoom } from '../heap/heapRoom.js'
import type { RecentTransfers } from '../rma/contiguous.js'
import type { CallQueue } from './callQueue.js'

/** What the parts of a session need to know of it. */
export interface LiveSession {
  readonly queue: CallQueue
  /** Ordinal of its device. */
  readonly device: number
  /** Primary context of the device. */
  readonly context: bigint
  /** This process's PE. */
  readonly pe: number
  readonly peCount: number
  /** What the symmetric heap takes of the device. */
  readonly room: HeapRoom
  /** The last transfers that were queued on streams, where they may be recognised. */
  readonly recent: RecentTransfers
  /** Keeps the operands of a transfer that was only started reachable until `quiet()` has ended. */
  holdUntilQuiet(...operands: readonly object[]): void
  /** Whether the session has ended. */
  isOver(): boolean
  /** Throws DisposedError once the session has ended. */
  requireOpen(operation: string): void
}

import { CommunicatorStateError } from '../lifetime/communicatorErrors.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import type { LocalRanks } from '../lifetime/localRanks.js'
import { isCollecting, isGroupOpen } from './groupState.js'

// NCCL connects ranks at the first operation that needs the connection. A blocking communicator waits inside that call
// for the other ranks. It waits forever for a rank of the same thread, whose call would come next on this thread.

/** An operation that will connect all ranks, or this rank and a peer. */
interface PendingConnect {
  readonly live: LiveCommunicator
  /** Undefined means all ranks. */
  readonly peer: number | undefined
  readonly sends: boolean
}

/** Pending connections of the open group. */
let pendingConnects: PendingConnect[] = []
/** Pending connections of groups that wait on other threads. */
const asyncConnects = new Set<readonly PendingConnect[]>()

/** Prepares the connection of all ranks. @throws CommunicatorStateError if the call would never return */
export function connectAll(live: LiveCommunicator, api: string): void {
  connect({ live, peer: undefined, sends: false }, api)
}

/** Prepares the connection to a peer. @throws CommunicatorStateError if the call would never return */
export function connectPeer(live: LiveCommunicator, peer: number, sends: boolean, api: string): void {
  const { connectedPeers } = live
  // NCCL itself reports a rank that only sends to itself.
  if (connectedPeers === undefined || peer === live.rank || connectedPeers.has(peerKey(peer, sends))) return
  connect({ live, peer, sends }, api)
}

function connect(pending: PendingConnect, api: string): void {
  if (isGroupOpen() || isCollecting()) {
    pendingConnects.push(pending)
    return
  }
  if (waitsForever(pending, [])) throw unconnected(pending.live, api)
  markConnected([pending])
}

/** Returns the connections that the ending group makes. Pass them to `markConnected` afterwards. */
export function takePendingConnects(): readonly PendingConnect[] {
  if (pendingConnects.length === 0) return pendingConnects
  const taken = pendingConnects
  pendingConnects = []
  return taken
}

/**
 * Returns the error for a group that would deadlock, else undefined.
 *
 * It would wait for a rank of this thread that has no call in it.
 */
export function findDeadlock(connects: readonly PendingConnect[]): Error | undefined {
  const found = connects.find((pending) => waitsForever(pending, connects))
  return found === undefined ? undefined : unconnected(found.live, 'group')
}

/** Records that the operations were made and their ranks are connected. */
export function markConnected(connects: readonly PendingConnect[]): void {
  for (const { live, peer, sends } of connects) {
    if (peer === undefined) live.isConnected = true
    else live.connectedPeers?.add(peerKey(peer, sends))
  }
}

/** Records a group that waits on another thread. Call the returned function when the wait has ended. */
export function trackAsyncConnects(connects: readonly PendingConnect[]): () => void {
  if (connects.length === 0) return () => undefined
  asyncConnects.add(connects)
  return () => asyncConnects.delete(connects)
}

function waitsForever(pending: PendingConnect, sameGroup: readonly PendingConnect[]): boolean {
  const { live, peer, sends } = pending
  const { localRanks } = live
  if (localRanks === undefined || localRanks.count < 2) return false
  const coming = [...sameGroup, ...[...asyncConnects].flat()].filter((other) => other.live.localRanks === localRanks)
  if (peer === undefined) {
    const ranks = new Set([live, ...coming.flatMap((other) => (other.peer === undefined ? [other.live] : []))])
    return ranks.size < localRanks.count
  }
  if (!mayBeLocal(localRanks, peer)) return false
  return !coming.some((other) => other.live.rank === peer && other.peer === live.rank && other.sends !== sends)
}

/** True if a rank is, or may be, in this thread: the rank of an init in progress is unknown. */
function mayBeLocal(localRanks: LocalRanks, rank: number): boolean {
  return localRanks.createdRanks.has(rank) || localRanks.createdRanks.size < localRanks.count
}

function peerKey(peer: number, sends: boolean): number {
  return sends ? peer : -1 - peer
}

function unconnected({ rank, worldSize, deviceOrdinal }: LiveCommunicator, operation: string): Error {
  return new CommunicatorStateError({ operation, state: 'unconnected', rank, worldSize, deviceOrdinal })
}

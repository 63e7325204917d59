import { CommunicatorStateError } from '../lifetime/communicatorErrors.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import type { LocalRanks } from '../lifetime/localRanks.js'
import { isCollecting, isGroupOpen } from './groupState.js'

// NCCL connects ranks when an operation first needs it, and a communicator that blocks waits for them inside that call.
// Where one of them is in the same thread, it never comes: its call would be the next one of this thread.

/** An operation that is about to connect: all ranks, or this one and a peer. */
interface PendingConnect {
  readonly live: LiveCommunicator
  /** Undefined: all ranks. */
  readonly peer: number | undefined
  readonly sends: boolean
}

/** Of the group that is open. */
let pendingConnects: PendingConnect[] = []
/** Of groups that wait on other threads. */
const asyncConnects = new Set<readonly PendingConnect[]>()

/**
 * Before an operation of all ranks that are not connected yet. @throws CommunicatorStateError where it would never
 * return.
 */
export function connectAll(live: LiveCommunicator, api: string): void {
  connect({ live, peer: undefined, sends: false }, api)
}

/** Before an operation with a peer: the same. */
export function connectPeer(live: LiveCommunicator, peer: number, sends: boolean, api: string): void {
  const { connectedPeers } = live
  // NCCL itself has something to say of a rank that sends to itself alone.
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

/** What the group that ends now connects; to be given to `markConnected` once it has. */
export function takePendingConnects(): readonly PendingConnect[] {
  if (pendingConnects.length === 0) return pendingConnects
  const taken = pendingConnects
  pendingConnects = []
  return taken
}

/**
 * The error for a group of these where it would wait for a rank of this thread that has no call in it; undefined where
 * not.
 */
export function findDeadlock(connects: readonly PendingConnect[]): Error | undefined {
  const found = connects.find((pending) => waitsForever(pending, connects))
  return found === undefined ? undefined : unconnected(found.live, 'group')
}

/** The operations have been made, so the ranks are connected. */
export function markConnected(connects: readonly PendingConnect[]): void {
  for (const { live, peer, sends } of connects) {
    if (peer === undefined) live.isConnected = true
    else live.connectedPeers?.add(peerKey(peer, sends))
  }
}

/** The group is about to wait on another thread; returns what is to be called when it no longer does. */
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

/** Whether a rank is in this thread; of those whose init is under way nobody knows which they are. */
function mayBeLocal(localRanks: LocalRanks, rank: number): boolean {
  return localRanks.createdRanks.has(rank) || localRanks.createdRanks.size < localRanks.count
}

function peerKey(peer: number, sends: boolean): number {
  return sends ? peer : -1 - peer
}

function unconnected({ rank, worldSize, deviceOrdinal }: LiveCommunicator, operation: string): Error {
  return new CommunicatorStateError({ operation, state: 'unconnected', rank, worldSize, deviceOrdinal })
}

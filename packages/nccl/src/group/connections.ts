import { CommunicatorStateError } from '../lifetime/communicatorErrors.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import type { Clique } from './clique.js'
import { isCollecting, isGroupOpen } from './groupState.js'

// NCCL connects ranks when an operation first needs it, and a communicator that blocks waits for them inside that call.
// Where one of them is in the same thread, it never comes: its call would be the next one of this thread.

/** An operation that connects: of all ranks, or of this one and a peer. */
interface Meeting {
  readonly live: LiveCommunicator
  /** Undefined: all ranks. */
  readonly peer: number | undefined
  readonly sends: boolean
}

/** Of the group that is open. */
let meetings: Meeting[] = []
/** Of groups that wait on other threads. */
const underWay = new Set<readonly Meeting[]>()

/** Before an operation of all ranks that are not connected yet. @throws CommunicatorStateError where it would wait for ever. */
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

function connect(meeting: Meeting, api: string): void {
  if (isGroupOpen() || isCollecting()) {
    meetings.push(meeting)
    return
  }
  if (waitsForEver(meeting, [])) throw unconnected(meeting.live, api)
  note(meeting)
}

/** What the group that ends now connects; to be given to `connected` when it has. */
export function takeMeetings(): readonly Meeting[] {
  if (meetings.length === 0) return meetings
  const taken = meetings
  meetings = []
  return taken
}

/** The error for the open group where it would wait for a rank of this thread of which it has no call; undefined where not. */
export function meetingsAlone(): Error | undefined {
  const alone = meetings.find((meeting) => waitsForEver(meeting, meetings))
  return alone === undefined ? undefined : unconnected(alone.live, 'group')
}

/** The group has ended well, so all have met. */
export function connected(met: readonly Meeting[]): void {
  for (const meeting of met) note(meeting)
}

/** The group is about to wait on another thread; returns what is to be called when it no longer does. */
export function meetElsewhere(met: readonly Meeting[]): () => void {
  if (met.length === 0) return () => undefined
  underWay.add(met)
  return () => underWay.delete(met)
}

function note({ live, peer, sends }: Meeting): void {
  if (peer === undefined) live.isConnected = true
  else live.connectedPeers?.add(peerKey(peer, sends))
}

function waitsForEver(meeting: Meeting, present: readonly Meeting[]): boolean {
  const { live, peer, sends } = meeting
  const { clique } = live
  if (clique === undefined || clique.members < 2) return false
  const coming = [...present, ...[...underWay].flat()].filter((other) => other.live.clique === clique)
  if (peer === undefined) {
    const ranks = new Set([live, ...coming.flatMap((other) => (other.peer === undefined ? [other.live] : []))])
    return ranks.size < clique.members
  }
  if (!mayBeHere(clique, peer)) return false
  return !coming.some((other) => other.live.rank === peer && other.peer === live.rank && other.sends !== sends)
}

/** Whether a rank is in this thread; of those whose init is under way nobody knows which they are. */
function mayBeHere(clique: Clique, rank: number): boolean {
  return clique.made.has(rank) || clique.made.size < clique.members
}

function peerKey(peer: number, sends: boolean): number {
  return sends ? peer : -1 - peer
}

function unconnected({ rank, worldSize, device }: LiveCommunicator, operation: string): Error {
  return new CommunicatorStateError({ operation, state: 'unconnected', rank, worldSize, device })
}

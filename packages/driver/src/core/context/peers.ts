/** A context that uses memory, as packages without contexts of their own know it, too. */
export interface Reaching {
  /** The `CUcontext`. */
  readonly _handle: bigint
  readonly device: { readonly ordinal: number }
}

interface PeerContext extends Reaching {
  /** Calls `fn` before the context closes; what it returns takes that back. */
  _beforeClose(fn: () => void): () => void
}

/** A context whose plain memory another one may use. */
interface Peer {
  readonly deviceOrdinal: number
  /** Called with the contexts' own handlers: they need not tell of their end any more. */
  readonly unwatch: () => void
}

/** The peers of each context, both by handle: all objects of a context share them. */
const peers = new Map<bigint, Map<bigint, Peer>>()

/** Rises when any access ends: what was found before is asked for again. */
export const accessEpoch = { current: 0 }

/** Called when access to memory may have ended. */
export function forgetReach(): void {
  accessEpoch.current += 1
}

/** The devices of the contexts whose plain memory a context may use. */
export function peerOrdinals(context: Reaching): readonly number[] {
  return [...(peers.get(context._handle)?.values() ?? [])].map(({ deviceOrdinal }) => deviceOrdinal)
}

/** Whether a context may use plain memory of another one, which is named by its handle. */
export function isPeerOf(context: Reaching, other: bigint): boolean {
  return peers.get(context._handle)?.has(other) === true
}

/** Notes that a context may use plain memory of `peer`, until it ends or either context does. */
export function addPeer(context: PeerContext, peer: PeerContext): void {
  const own = peers.get(context._handle) ?? new Map<bigint, Peer>()
  peers.set(context._handle, own)
  if (own.has(peer._handle)) return
  const remove = (): void => removePeer(context, peer)
  const handlers = [context._beforeClose(remove), peer._beforeClose(remove)]
  own.set(peer._handle, {
    deviceOrdinal: peer.device.ordinal,
    unwatch: () => {
      for (const takeBack of handlers) takeBack()
    },
  })
}

/** Undoes {@link addPeer}. */
export function removePeer(context: PeerContext, peer: PeerContext): void {
  forgetReach()
  const own = peers.get(context._handle)
  own?.get(peer._handle)?.unwatch()
  own?.delete(peer._handle)
  if (own?.size === 0) peers.delete(context._handle)
}

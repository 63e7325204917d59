/** A context that accesses memory. Packages without contexts of their own use this interface too. */
export interface Reaching {
  /** The `CUcontext`. */
  readonly _handle: bigint
  readonly device: { readonly ordinal: number }
}

interface PeerContext extends Reaching {
  /** Calls `fn` before the context closes. Returns a function that removes `fn`. */
  _beforeClose(fn: () => void): () => void
}

/** A context whose ordinary memory another context can access. */
interface Peer {
  readonly deviceOrdinal: number
  /** Removes the handlers for the end of the two contexts. */
  readonly unwatch: () => void
}

/** The peers of each context, both by handle. All objects of one context share an entry. */
const peers = new Map<bigint, Map<bigint, Peer>>()

/** Increases when any access ends, which invalidates cached access checks. */
export const accessEpoch = { current: 0 }

/** Invalidates cached access checks, because access to memory may have ended. */
export function forgetReach(): void {
  accessEpoch.current += 1
}

/** Returns the devices whose ordinary memory a context can access. */
export function peerOrdinals(context: Reaching): readonly number[] {
  return [...(peers.get(context._handle)?.values() ?? [])].map(({ deviceOrdinal }) => deviceOrdinal)
}

/** Whether a context can access ordinary memory of another context, given by its handle. */
export function isPeerOf(context: Reaching, other: bigint): boolean {
  return peers.get(context._handle)?.has(other) === true
}

/**
 * Records that a context can access ordinary memory of `peer`, until peer access is disabled or either context closes.
 */
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

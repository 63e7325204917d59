import { type OptionKeys, optionalOptions, PeerRefusedError, usersWith } from '@shoal/types'
import { requireDone, socketAddon } from './socketCalls.js'

/** Options that accept other users at a socket. */
export interface PeerOptions {
  /** Accepted user ids of the peer, in addition to this process's own. Default: none. */
  readonly users?: readonly number[] | undefined
}

export const peerKeys: OptionKeys<PeerOptions> = { users: true }

/** Returns all accepted user ids. @throws TypeError, RangeError */
export function usersIn(options: PeerOptions | undefined, api: string): readonly number[] {
  return usersWith(optionalOptions(options, api, peerKeys).users, api)
}

/** Requires a peer of an accepted user. The kernel reports the user. @throws PeerRefusedError, SystemError */
export function requirePeer(descriptor: number, users: readonly number[], api: string): void {
  const user = requireDone(socketAddon().peerUser(descriptor), api, 'getsockopt')
  if (!users.includes(user)) throw new PeerRefusedError({ api, user, users })
}

import { type OptionKeys, optionalOptions, PeerRefusedError, usersWith } from '@shoal/types'
import { requireDone, socketAddon } from './socketCalls.js'

/** Whom a socket is shared with. */
export interface PeerOptions {
  /** User ids whose processes may be at the other end, beside this process's own. Default: none. */
  readonly users?: readonly number[] | undefined
}

export const peerKeys: OptionKeys<PeerOptions> = { users: true }

/** All user ids that are let in. @throws TypeError, RangeError */
export function usersIn(options: PeerOptions | undefined, api: string): readonly number[] {
  return usersWith(optionalOptions(options, api, peerKeys).users, api)
}

/**
 * The kernel tells who is at the other end; nobody can claim to be somebody else. @throws PeerRefusedError, SystemError
 */
export function requirePeer(descriptor: number, users: readonly number[], api: string): void {
  const user = requireDone(socketAddon().peerUser(descriptor), api, 'getsockopt')
  if (!users.includes(user)) throw new PeerRefusedError({ api, user, users })
}

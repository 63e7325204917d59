import { nameErrorClass, ShoalError } from './base.js'

/** Options of the {@link PeerRefusedError} constructor. */
export interface PeerRefusedErrorOptions {
  /** The call that connected to the other process. */
  readonly api: string
  /** User id of the other process. */
  readonly user: number
  /** Accepted user ids. */
  readonly users: readonly number[]
}

/** The peer of a socket belongs to a user who is not accepted. */
export class PeerRefusedError extends ShoalError {
  static {
    nameErrorClass(PeerRefusedError, 'PeerRefusedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_PEER_REFUSED'
  /** The call that connected to the other process. */
  readonly api: string
  /** User id of the other process. */
  readonly user: number
  /** Accepted user ids. */
  readonly users: readonly number[]

  constructor({ api, user, users }: PeerRefusedErrorOptions) {
    super(
      `${api}: the process at the other end belongs to user ${user}, and only ${users.join(', ')} may connect; ` +
        'add user ids with the option users',
    )
    this.api = api
    this.user = user
    this.users = users
  }
}

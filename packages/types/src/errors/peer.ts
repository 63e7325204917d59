import { nameErrorClass, ShoalError } from './base.js'

/** What a {@link PeerRefusedError} says. */
export interface PeerRefusedErrorOptions {
  /** The call that met the other process. */
  readonly api: string
  /** User id of the other process. */
  readonly user: number
  /** User ids that are let in. */
  readonly users: readonly number[]
}

/** The process at the other end of a socket belongs to a user who was not named. */
export class PeerRefusedError extends ShoalError {
  static {
    nameErrorClass(PeerRefusedError, 'PeerRefusedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_PEER_REFUSED'
  /** The call that met the other process. */
  readonly api: string
  /** User id of the other process. */
  readonly user: number
  /** User ids that are let in. */
  readonly users: readonly number[]

  constructor({ api, user, users }: PeerRefusedErrorOptions) {
    super(
      `${api}: the process at the other end belongs to user ${user}, and only ${users.join(', ')} may be there; ` +
        'name others in the option users',
    )
    this.api = api
    this.user = user
    this.users = users
  }
}

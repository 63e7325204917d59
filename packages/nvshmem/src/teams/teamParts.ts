import type { nvshmem_team_t } from '@shoal/nvshmem-sys'
import type { LiveSession } from '../queue/liveSession.js'

/** Parts of a Team. */
export interface TeamParts {
  readonly live: LiveSession
  readonly handle: nvshmem_team_t
  readonly name: string
  readonly pe: number
  readonly peCount: number
  /** Whether it is one of NVSHMEM's predefined teams, which live as long as the session. */
  readonly isPredefined: boolean
}

/** A team as an argument: a `Team`. */
export interface SessionTeam {
  /** Name of the team, for messages. */
  readonly name: string
  /** This process's number in the team. */
  readonly pe: number
  /** Number of PEs in the team. */
  readonly peCount: number
  /** @internal The handle, checked for a call of this session. @throws DisposedError, TypeError for another session */
  _handleIn(live: LiveSession, api: string): nvshmem_team_t
}

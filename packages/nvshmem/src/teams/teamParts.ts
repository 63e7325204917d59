import type { nvshmem_team_t } from '@shoal/nvshmem-sys'
import type { LiveSession } from '../session/live.js'

/** What is needed to make a Team. */
export interface TeamParts {
  readonly live: LiveSession
  readonly handle: nvshmem_team_t
  readonly name: string
  readonly pe: number
  readonly peCount: number
  /** Whether it is one of NVSHMEM's own, which live as long as the session. */
  readonly isPredefined: boolean
}

import type { Launcher } from '../job.js'

/** What the environment says about this process. */
export interface RankPlace {
  readonly launcher: Launcher
  readonly rank: number
  readonly worldSize: number
  /** What the launcher does not tell is found out from the other ranks. */
  readonly localRank: number | undefined
  readonly localWorldSize: number | undefined
  readonly nodeRank: number | undefined
}

import { ncclVersion } from '@shoal/nccl'
import type { CaseContext } from '../../suite.js'

/** Skips the case where the NCCL in use is older than what it asks about. */
export function needNccl(t: CaseContext, since: number, what: string): void {
  const version = ncclVersion()
  if (version.value < since) t.skip(`NCCL ${version} has no ${what}`)
}

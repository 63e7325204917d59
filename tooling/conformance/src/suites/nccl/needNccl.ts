import { ncclVersion } from '@shoal/nccl'
import type { CaseContext } from '../../suite.js'

/** Skips the case if the loaded NCCL is older than the tested feature. */
export function needNccl(t: CaseContext, since: number, what: string): void {
  const version = ncclVersion()
  if (version.value < since) t.skip(`NCCL ${version} has no ${what}`)
}

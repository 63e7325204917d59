import type { CaseContext } from '../suite.js'

/**
 * Is true if a case must run everything: on hardware, and with SHOAL_CONFORMANCE=full. Otherwise a case takes a new
 * sample in each run.
 */
export function runsEverything(t: CaseContext): boolean {
  return !t.isSoftware || process.env['SHOAL_CONFORMANCE'] === 'full'
}

import type { CaseContext } from '../suite.js'

/**
 * Whether a case runs all that it can think of: on hardware, and where SHOAL_CONFORMANCE=full asks for it. Otherwise it
 * takes another sample in each run.
 */
export function runsEverything(t: CaseContext): boolean {
  return !t.isSoftware || process.env['SHOAL_CONFORMANCE'] === 'full'
}

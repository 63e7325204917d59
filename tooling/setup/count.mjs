// Counts what vitest's JSON report says.
import { existsSync } from 'node:fs'
import { readJson } from './workspace.mjs'

/** Passed, failed and skipped tests of a report; a file that could not be loaded counts as one failure. */
export function countTests(resultsFile) {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  if (!existsSync(resultsFile)) return counts
  for (const file of readJson(resultsFile).testResults) {
    const states = file.assertionResults.map((test) => test.status)
    const failed = states.filter((state) => state === 'failed').length
    counts.passed += states.filter((state) => state === 'passed').length
    counts.failed += failed === 0 && file.status === 'failed' ? 1 : failed
    counts.skipped += states.filter((state) => state !== 'passed' && state !== 'failed').length
  }
  return counts
}

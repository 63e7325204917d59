// Reads vitest's JSON report: counts, and what failed.
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { readJson, root } from './workspace.mjs'

/** Counts the passed, failed and skipped tests of a report. A file that could not be loaded counts as one failure. */
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

/**
 * Describes each failure of a report in one or a few lines: failed tests with their errors, and files that could not be
 * loaded.
 */
export function describeFailures(resultsFile, linesOfEach = 12) {
  if (!existsSync(resultsFile)) return []
  return readJson(resultsFile).testResults.flatMap((file) => {
    const where = relative(root, file.name)
    const failed = file.assertionResults.filter((test) => test.status === 'failed')
    if (failed.length === 0 && file.status === 'failed') return [describe(where, [file.message ?? ''])]
    return failed.map((test) =>
      describe([where, ...test.ancestorTitles, test.title].join(' > '), test.failureMessages ?? []),
    )
  })

  function describe(title, messages) {
    const lines = stripVTControlCharacters(messages.join('\n')).split('\n')
    return [`failed: ${title}`, ...lines.slice(0, linesOfEach).map((line) => `  ${line}`)].join('\n')
  }
}

#!/usr/bin/env node
// Prints `N passed, N failed, N skipped` as its last line, from what `npm test` wrote.
// Usage: count.mjs STATUS, the exit status of `npm test`. Exits non-zero unless everything passed.
import { existsSync } from 'node:fs'
import { resultsFile, summaryFile } from './test.mjs'
import { readJson } from './workspace.mjs'

const status = Number(process.argv[2] ?? 1)
const counts = { passed: 0, failed: 0, skipped: 0 }

if (existsSync(resultsFile)) {
  for (const file of readJson(resultsFile).testResults) {
    const states = file.assertionResults.map((test) => test.status)
    counts.passed += states.filter((state) => state === 'passed').length
    counts.skipped += states.filter((state) => ['skipped', 'pending', 'todo', 'disabled'].includes(state)).length
    const failed = states.filter((state) => state === 'failed').length
    // A file that could not be loaded has failed without a failed test of its own.
    counts.failed += failed === 0 && file.status === 'failed' ? 1 : failed
  }
} else {
  process.stdout.write('No test results were written.\n')
}
if (existsSync(summaryFile)) {
  for (const { name, passed } of readJson(summaryFile)) {
    if (passed || name === 'tests') continue
    process.stdout.write(`failed check: ${name}\n`)
    counts.failed += 1
  }
}
const ran = counts.passed + counts.failed > 0
if ((status !== 0 || !ran) && counts.failed === 0) counts.failed = 1
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = status === 0 && counts.failed === 0 ? 0 : 1

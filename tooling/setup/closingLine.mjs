#!/usr/bin/env node
// Prints what failed, then `N passed, N failed, N skipped`, from the files that `npm test` wrote. A failed check other
// than the tests (lint, types, packages) counts as one failure. Usage: closingLine.mjs STATUS, the exit status of `npm
// test`.
import { existsSync } from 'node:fs'
import { countTests, describeFailures } from './count.mjs'
import { resultsFile, summaryFile } from './test.mjs'
import { readJson } from './workspace.mjs'

const status = Number(process.argv[2] ?? 1)
const counts = countTests(resultsFile)
if (!existsSync(resultsFile)) process.stdout.write('No test results were written.\n')
if (existsSync(summaryFile)) {
  for (const { name, passed } of readJson(summaryFile)) {
    if (passed || name === 'tests') continue
    process.stdout.write(`failed check: ${name}\n`)
    counts.failed += 1
  }
}
for (const failure of describeFailures(resultsFile)) process.stdout.write(`${failure}\n`)
const nothingRan = counts.passed + counts.failed === 0
if ((status !== 0 || nothingRan) && counts.failed === 0) counts.failed = 1
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = counts.failed === 0 ? 0 : 1

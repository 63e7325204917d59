// Runs every check that a release needs: lint, types of the tests, the tests, the packed packages.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder, commandEnvironment, offline, root, run } from './workspace.mjs'

export const resultsFile = join(cacheFolder, 'vitest.json')
export const summaryFile = join(cacheFolder, 'test-summary.json')

/** Runs every check, even after one has failed. Returns 0 only if all passed. */
export function runTests(pnpmFolder, testArguments) {
  mkdirSync(cacheFolder, { recursive: true })
  for (const file of [resultsFile, summaryFile]) rmSync(file, { force: true })
  const bin = (name) => join(root, 'node_modules', '.bin', name)
  const reporters = ['default', join(root, 'tooling/config/src/skipReporter.ts'), 'json']
  const checks = [
    { name: 'lint and format', command: bin('biome'), arguments: ['check'] },
    {
      name: 'format of C and C++',
      command: process.execPath,
      arguments: [join(root, 'tooling/setup/cxxFormat.mjs')],
      connects: true,
    },
    { name: 'lines of comments', command: process.execPath, arguments: [join(root, 'tooling/setup/columns.mjs')] },
    {
      name: 'lines of files',
      command: process.execPath,
      arguments: [join(root, 'tooling/setup/lines.mjs'), '--check'],
    },
    { name: 'prose', command: process.execPath, arguments: [join(root, 'tooling/setup/prose.mjs')] },
    {
      name: 'regular expressions',
      command: process.execPath,
      arguments: [join(root, 'tooling/setup/patterns.mjs')],
    },
    { name: 'imports', command: process.execPath, arguments: [join(root, 'tooling/setup/imports.mjs')] },
    { name: 'types of the tests', command: bin('tsc'), arguments: ['-p', 'tooling/config/tsconfig.tests.json'] },
    {
      name: 'tests',
      command: bin('vitest'),
      arguments: [
        'run',
        ...reporters.map((reporter) => `--reporter=${reporter}`),
        `--outputFile.json=${resultsFile}`,
        ...testArguments,
      ],
    },
    {
      name: 'packed packages',
      command: process.execPath,
      arguments: [join(root, 'tooling/setup/packages.mjs')],
      connects: true,
    },
  ]
  const outcomes = []
  for (const check of checks) {
    process.stdout.write(`\n── ${check.name}\n`)
    const started = performance.now()
    const env = commandEnvironment([pnpmFolder])
    const status = run(check.command, check.arguments, { env: check.connects ? env : offline(env) })
    outcomes.push({ name: check.name, passed: status === 0, seconds: (performance.now() - started) / 1000 })
  }
  writeFileSync(summaryFile, `${JSON.stringify(outcomes, null, 2)}\n`)
  process.stdout.write('\n')
  for (const { name, passed, seconds } of outcomes) {
    process.stdout.write(`${passed ? 'passed' : 'FAILED'}  ${name} (${seconds.toFixed(1)} s)\n`)
  }
  return outcomes.every(({ passed }) => passed) ? 0 : 1
}

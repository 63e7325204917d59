#!/usr/bin/env node
// Runs the tests on every supported major version of Node: `pnpm test:nodes [MAJOR …] [-- vitest arguments]`.
// The other Nodes come from the npm packages node-<platform>-<arch>.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { countTests } from './count.mjs'
import { fetchNode } from './fetchNode.mjs'
import { installWorkspace } from './install.mjs'
import { cacheFolder, commandEnvironment, root, run, runMain, SetupError } from './workspace.mjs'

const supported = ['22', '24', '26']

await runMain(() => {
  const separator = process.argv.indexOf('--')
  const majors = process.argv.slice(2, separator < 0 ? undefined : separator)
  const vitestArguments = separator < 0 ? [] : process.argv.slice(separator + 1)
  const unknown = majors.filter((major) => !supported.includes(major))
  if (unknown.length > 0)
    throw new SetupError(`Not in the matrix: ${unknown.join(', ')}. It has ${supported.join(', ')}.`)

  const pnpmFolder = installWorkspace()
  build(pnpmFolder)
  const reports = (majors.length > 0 ? majors : supported).map((major) => runOn(major, pnpmFolder, vitestArguments))
  process.stdout.write('\n')
  for (const { version, status, counts } of reports) {
    const { passed, failed, skipped } = counts
    const verdict = status === 0 ? 'passed' : 'FAILED'
    process.stdout.write(`${verdict}  Node ${version}: ${passed} passed, ${failed} failed, ${skipped} skipped\n`)
  }
  return reports.every(({ status }) => status === 0) ? 0 : 1
})

function runOn(major, pnpmFolder, vitestArguments) {
  const node = fetchNode(major)
  const results = join(cacheFolder, `vitest-node-${major}.json`)
  mkdirSync(cacheFolder, { recursive: true })
  process.stdout.write(`\n── Node ${node.version}\n`)
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const reporters = ['default', join(root, 'tooling/config/src/skipReporter.ts'), 'json']
  const status = run(
    node.executable,
    [
      vitest,
      'run',
      ...reporters.map((reporter) => `--reporter=${reporter}`),
      `--outputFile.json=${results}`,
      ...vitestArguments,
    ],
    // Tests that start `node` themselves must start the same version.
    { env: commandEnvironment([node.folder, pnpmFolder]) },
  )
  return { version: node.version, status, counts: countTests(results) }
}

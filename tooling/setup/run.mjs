#!/usr/bin/env node
// `npm run demo` and `npm test`: all the set-up a bare clone needs, then the job.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { installWorkspace } from './install.mjs'
import { checkCompiler, checkNode } from './requirements.mjs'
import { runTests } from './test.mjs'
import { manifest, root, run, runMain, SetupError } from './workspace.mjs'

const demo = { name: '@shoal/example-all-reduce', entry: 'docs/examples/all-reduce/dist/main.js' }

await runMain(() => {
  const [job, ...jobArguments] = process.argv.slice(2)
  if (job !== 'demo' && job !== 'test' && job !== 'build') {
    throw new SetupError(`Unknown job ${job ?? '(none)'}: say demo, test or build.`)
  }
  checkNode(manifest.engines.node)
  checkCompiler()
  const pnpmFolder = installWorkspace()
  if (job === 'demo') return runDemo(pnpmFolder, jobArguments)
  build(pnpmFolder)
  return job === 'test' ? runTests(pnpmFolder, jobArguments) : 0
})

function runDemo(pnpmFolder, demoArguments) {
  // The software device is no dependency of anything, and the demo falls back to it.
  build(pnpmFolder, [`${demo.name}...`, '@shoal/sim'])
  const entry = join(root, demo.entry)
  if (!existsSync(entry)) throw new SetupError(`${demo.name} was built but ${demo.entry} is not there.`)
  return run(process.execPath, [entry, ...demoArguments])
}

#!/usr/bin/env node
// `npm run demo`, `npm test`, `npm run site`: sets up a bare clone, then does the job.
import { join } from 'node:path'
import { build } from './build.mjs'
import { runDemo } from './demo.mjs'
import { fetchTools } from './fetchTools.mjs'
import { installWorkspace } from './install.mjs'
import { checkCompiler, checkNode } from './requirements.mjs'
import { runTests } from './test.mjs'
import { manifest, root, run, runMain, SetupError } from './workspace.mjs'

await runMain(() => {
  const [job, ...jobArguments] = process.argv.slice(2)
  const jobs = ['demo', 'test', 'build', 'site', 'site:test']
  if (!jobs.includes(job)) throw new SetupError(`Unknown job ${job ?? '(none)'}: say one of ${jobs.join(', ')}.`)
  checkNode(manifest.engines.node)
  checkCompiler()
  if (job === 'demo') return runDemo(jobArguments)
  const pnpmFolder = installWorkspace()
  build(pnpmFolder)
  if (job === 'test') return runTests(pnpmFolder, jobArguments)
  if (job.startsWith('site')) return runSite(job === 'site:test', jobArguments)
  return 0
})

/** Makes the site. Its tests need a browser and browser tools; they fetch the tools. */
function runSite(isTested, siteArguments) {
  const status = run(process.execPath, [join(root, 'tooling/site/main.mjs')])
  if (status !== 0 || !isTested) return status
  const tools = fetchTools('site', { 'axe-core': '4.14.1', lighthouse: '13.5.0', 'puppeteer-core': '25.16.0' })
  const env = { ...process.env, SHOAL_SITE: join(root, 'docs/site'), SHOAL_SITE_TOOLS: tools }
  return run(join(root, 'node_modules/.bin/vitest'), ['run', 'tooling/site', ...siteArguments], { env })
}

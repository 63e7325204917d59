#!/usr/bin/env node
// `pnpm docs:hardware`: renders the pages of docs/hardware from the kept results. --check only compares them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runMain, SetupError } from '../setup/workspace.mjs'
import { renderCosts } from './src/costsPage.mjs'
import { renderPage } from './src/page.mjs'
import { readSettings } from './src/results.mjs'

const folder = join(root, 'docs', 'hardware')

await runMain(() => {
  const settings = readSettings()
  mkdirSync(folder, { recursive: true })
  for (const [name, rendered] of [
    ['README.md', renderPage(settings)],
    ['costs.md', renderCosts(settings)],
  ]) {
    const page = join(folder, name)
    const present = existsSync(page) ? readFileSync(page, 'utf8') : ''
    if (process.argv.includes('--check')) {
      if (present !== rendered) throw new SetupError(`docs/hardware/${name} is stale: run pnpm docs:hardware`)
    } else writeFileSync(page, rendered)
  }
  return 0
})

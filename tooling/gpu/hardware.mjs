#!/usr/bin/env node
// `pnpm docs:hardware`: renders docs/hardware/README.md from the kept results; --check only compares.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root, runMain, SetupError } from '../setup/workspace.mjs'
import { renderPage } from './src/page.mjs'
import { readSettings } from './src/results.mjs'

const page = join(root, 'docs', 'hardware', 'README.md')

await runMain(() => {
  const rendered = renderPage(readSettings())
  const present = existsSync(page) ? readFileSync(page, 'utf8') : ''
  if (process.argv.includes('--check')) {
    if (present !== rendered) throw new SetupError('docs/hardware/README.md is stale: run pnpm docs:hardware')
    return 0
  }
  mkdirSync(dirname(page), { recursive: true })
  writeFileSync(page, rendered)
  return 0
})

#!/usr/bin/env node
// `pnpm gpu:collect FOLDER`: keeps the results that a GPU host wrote into FOLDER, in docs/hardware/results.
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { say } from '../setup/install.mjs'
import { readJson, root, runMain, SetupError } from '../setup/workspace.mjs'
import { keepRecord, recordOf } from './src/results.mjs'

await runMain(() => {
  const folder = process.argv[2]
  if (!folder) throw new SetupError('usage: pnpm gpu:collect FOLDER')
  const file = join(resolve(folder), 'results.json')
  if (!existsSync(file)) throw new SetupError(`There is no results.json in ${folder}.`)
  const kept = keepRecord(recordOf(readJson(file)))
  say(`kept ${relative(root, kept)}; now run pnpm docs:hardware`)
  return 0
})

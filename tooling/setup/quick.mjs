#!/usr/bin/env node
// `pnpm test:quick [--since COMMIT]`: lints, builds and tests the changes since a commit, in about 90 seconds. The
// default is the commit where the branch left `origin/main`. Test files that do not fit into the time are counted, and
// `npm test` runs them. `--keep-times` records how long the files of the last `npm test` took.
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { installWorkspace } from './install.mjs'
import { resultsFile } from './test.mjs'
import { capture, readJson, root, run, runMain } from './workspace.mjs'

const timesFile = join(root, 'tooling/config/testSeconds.json')
/** Seconds for everything. A test file that has started is not stopped. */
const limit = 90
/** Seconds assumed for a test file without a recorded time. Files that take less get no line in the table. */
const usual = 3
/** The same as `maxWorkers` of vitest.config.ts. */
const workers = 3

/**
 * Returns the test files for a change, the most relevant first: changed files, files named like a changed source, then
 * the shortest.
 */
export function chosenTests(changed, allTests, seconds) {
  const folderOf = (file) => /^(?:packages|tooling|docs\/examples)\/[^/]+\//.exec(file)?.[0]
  const folders = new Set(changed.map(folderOf).filter((folder) => folder !== undefined))
  const names = changed.map((file) => basename(file).replace(/\..*$/, '').toLowerCase())
  const rank = (file) => {
    if (changed.includes(file)) return 0
    return names.some((name) => basename(file).toLowerCase().startsWith(`${name}.`)) ? 1 : 2
  }
  const lengthOf = (file) => seconds[file] ?? usual
  return allTests
    .filter((file) => folders.has(folderOf(file)))
    .sort((a, b) => rank(a) - rank(b) || lengthOf(a) - lengthOf(b) || (a < b ? -1 : 1))
}

/** Returns as many test files as fit into the available seconds, with several running at once. */
export function fitting(files, available, seconds) {
  let left = available * workers
  return files.filter((file) => {
    const length = seconds[file] ?? usual
    // A file that alone takes longer than the available time does not fit, however many workers there are.
    if (length > available || length > left) return false
    left -= length
    return true
  })
}

function changedFiles(since) {
  const from = since ?? capture('git', ['merge-base', 'HEAD', 'origin/main']).trim()
  const listed = [
    capture('git', ['diff', '--name-only', '--diff-filter=d', from]),
    capture('git', ['ls-files', '--others', '--exclude-standard']),
  ]
  return listed.flatMap((text) => text.split('\n')).filter((file) => file !== '')
}

function testFiles() {
  const homes = ['packages', 'tooling', 'docs/examples'].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}/test`),
  )
  return homes.flatMap((home) => {
    if (!existsSync(join(root, home))) return []
    const names = readdirSync(join(root, home), { recursive: true }).filter((name) => name.endsWith('.test.ts'))
    return names.map((name) => `${home}/${name}`)
  })
}

function keepTimes() {
  const results = readJson(resultsFile).testResults
  const all = results.map(({ name, startTime, endTime }) => [
    relative(root, name),
    Math.round((endTime - startTime) / 1000),
  ])
  const long = all.filter(([, length]) => length > usual).sort((a, b) => b[1] - a[1])
  writeFileSync(timesFile, `${JSON.stringify(Object.fromEntries(long), null, 2)}\n`)
  return 0
}

function main() {
  const began = performance.now()
  const options = { since: { type: 'string' }, 'keep-times': { type: 'boolean', default: false } }
  const { values } = parseArgs({ options })
  if (values['keep-times']) return keepTimes()
  const changed = changedFiles(values.since)
  const tests = chosenTests(changed, testFiles(), readJson(timesFile))
  if (changed.length === 0) {
    process.stdout.write('nothing has changed\n')
    return 0
  }
  const bin = (name) => join(root, 'node_modules/.bin', name)
  const code = changed.filter((file) => /\.(?:[cm]?[jt]s|json)$/.test(file))
  const lint = code.length === 0 ? 0 : run(bin('biome'), ['check', '--no-errors-on-unmatched', ...code])
  build(installWorkspace())
  const available = limit - (performance.now() - began) / 1000
  const fit = fitting(tests, available, readJson(timesFile))
  const status = fit.length === 0 ? 0 : run(bin('vitest'), ['run', ...fit])
  process.stdout.write(`${fit.length} of ${tests.length} test files of what changed; \`npm test\` runs all of them\n`)
  return lint === 0 && status === 0 ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await runMain(main)

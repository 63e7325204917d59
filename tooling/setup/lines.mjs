#!/usr/bin/env node
// `pnpm lines [COMMIT]`: counts the handwritten lines of code in packages, tests and tooling, and compares them with a
// commit. Generated files, recorded data, the kernels' PTX, documentation and examples do not count. `--check` fails if
// a handwritten file has more than 500 lines.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { capture, root, runMain } from './workspace.mjs'

const isCode = /\.(?:[cm]?[jt]s|cc|c|h|hpp|cuh?|py|sh)$|(?:^|\/)Makefile$/
const isGenerated = /[Gg]enerated by (?!hand)/

/** Returns the area that a file counts for, if any. */
function areaOf(path) {
  if (!isCode.test(path) || /\.gen\.\w+$/.test(path)) return undefined
  if (!/^(?:packages|python|tooling)\//.test(path)) return undefined
  if (/\/tests?\//.test(path)) return 'tests'
  return path.startsWith('tooling/') ? 'tooling' : 'product'
}

const mostLines = 500
/** Matches files by other people or by a generator. */
const isForeign = /\.gen\.\w+$|(?:^|\/)generated\/|^tooling\/bindgen\/include\//

/** Returns one line for each handwritten file that is too long. */
export function tooLong(files) {
  return files.flatMap(([path, text]) => {
    if (!isCode.test(path) || isForeign.test(path) || isGenerated.test(text.slice(0, 300))) return []
    const count = text.split('\n').length - 1
    if (count <= mostLines) return []
    return [
      `${path}: ${count} lines, at most ${mostLines} may be: move a concept, or the tests of a subject, to a file of its own`,
    ]
  })
}

/** Counts lines by area. */
export function linesOf(files) {
  const counts = { product: 0, tests: 0, tooling: 0 }
  for (const [path, text] of files) {
    const area = areaOf(path)
    if (area === undefined || isGenerated.test(text.slice(0, 300))) continue
    counts[area] += text.split('\n').length - 1
  }
  return { ...counts, all: counts.product + counts.tests + counts.tooling }
}

function filesHere(isWanted = (path) => areaOf(path) !== undefined) {
  const paths = capture('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z']).split('\0')
  return paths.filter(isWanted).map((path) => [path, readOrEmpty(join(root, path))])
}

/** Returns '' for a tracked file that was deleted. */
function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    return ''
  }
}

function filesOf(commit) {
  const paths = capture('git', ['ls-tree', '-r', '--name-only', '-z', commit]).split('\0')
  const wanted = paths.filter((path) => areaOf(path) !== undefined)
  const input = wanted.map((path) => `${commit}:${path}\n`).join('')
  const { stdout } = spawnSync('git', ['cat-file', '--batch'], { cwd: root, input, maxBuffer: 1 << 29 })
  let at = 0
  return wanted.map((path) => {
    const end = stdout.indexOf(10, at)
    const size = Number(stdout.subarray(at, end).toString().split(' ')[2])
    at = end + 1 + size + 1
    return [path, stdout.subarray(end + 1, end + 1 + size).toString()]
  })
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  await runMain(() => {
    const commit = process.argv[2]
    if (commit === '--check') {
      const problems = tooLong(filesHere((path) => isCode.test(path)))
      for (const problem of problems) console.error(problem)
      return problems.length > 0 ? 1 : 0
    }
    const rows = [['here', linesOf(filesHere())]]
    if (commit !== undefined) rows.push([commit, linesOf(filesOf(commit))])
    const difference = (area) => rows[0][1][area] - rows[1][1][area]
    for (const area of Object.keys(rows[0][1])) {
      const cells = rows.map(([, counts]) => String(counts[area]).padStart(8))
      if (commit !== undefined) cells.push(String(difference(area)).padStart(8))
      console.log(`${area.padEnd(8)}${cells.join('')}`)
    }
    return 0
  })

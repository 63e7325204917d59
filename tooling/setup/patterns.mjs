#!/usr/bin/env node
// Refuses regular expressions in packages if their time grows faster than the text that they read. Such a text may come
// from a user, and the event loop would block. recheck decides. A pattern that recheck cannot decide is also refused,
// because a scanner or a simpler pattern always exists. Patterns made at run time are refused too, because nothing
// checks them.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSync, Visitor } from 'rolldown/utils'
import { root } from './workspace.mjs'

// recheck looks for its native files first, but its JavaScript suffices.
process.env['RECHECK_BACKEND'] = 'pure'
const { checkSync } = await import('recheck')

/** Milliseconds for one pattern. The slowest acceptable pattern takes two seconds on a busy machine. */
const timeout = 60_000
/** A pattern without one of these reads a limited number of characters from each position. */
const unlimited = /[*+]|,\}/

/** Returns what is wrong with a pattern, or `undefined`. */
export function patternProblem(source, flags) {
  if (!unlimited.test(source)) return undefined
  const { status, complexity, attack, error } = checkSync(source, flags, { timeout })
  if (status === 'safe') return undefined
  if (status === 'unknown') return `cannot be decided (${error.kind}): use a simpler pattern or a scanner`
  return `takes ${complexity.summary} time, for instance on ${attack.pattern}`
}

/** Returns one line for each bad pattern of a source. The line starts with the position. */
export function sourceProblems(file, text) {
  const problems = []
  const report = ({ start }, problem) => problems.push(`${file}:${text.slice(0, start).split('\n').length}: ${problem}`)
  const refuseConstructor = (node) => {
    if (node.callee.name === 'RegExp')
      report(node, 'a pattern made at run time cannot be checked: write it as a literal')
  }
  new Visitor({
    Literal(node) {
      if (node.regex === undefined) return
      const { pattern, flags } = node.regex
      const problem = patternProblem(pattern, flags)
      if (problem !== undefined) report(node, `/${pattern}/${flags} ${problem}`)
    },
    NewExpression: refuseConstructor,
    CallExpression: refuseConstructor,
  }).visit(parseSync(file, text).program)
  return problems
}

/** Returns the sources that are part of packages. */
function checkedFiles() {
  const folders = readdirSync(join(root, 'packages')).flatMap((name) => [
    `packages/${name}/src`,
    `packages/${name}/bin`,
  ])
  return folders.flatMap((folder) => {
    if (!existsSync(join(root, folder))) return []
    const names = readdirSync(join(root, folder), { recursive: true }).filter((name) => /\.[jt]s$/.test(name))
    return names.sort().map((name) => `${folder}/${name}`)
  })
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const problems = checkedFiles().flatMap((file) => sourceProblems(file, readFileSync(join(root, file), 'utf8')))
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}

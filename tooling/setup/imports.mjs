#!/usr/bin/env node
// Checks how the sources of each package import each other. In `driver` an import leads inward: core ← memory ← work ←
// entries. In every package, folders must not import values from each other in a circle. Circles of files, type imports
// included, must be small. Only `ffi` may write the argument block by hand.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './workspace.mjs'

const rings = ['core', 'memory', 'work']
/** The most files that may import each other in a circle. A reader cannot keep a larger circle in mind. */
const largestCircle = 10

const statement = /^(?:import|export) (type )?(?:(\{[^}]*\}|\* as \w+|\*|\w+) from )?'(\.[^']+)'/gm

/** Returns the files of its package that a source imports, and whether it imports only types. */
export function importsOf(file, text) {
  return [...text.matchAll(statement)].map(([, type, names = '', specifier]) => {
    const isList = names.startsWith('{')
    const list = names
      .replaceAll(/[{}]/g, '')
      .split(',')
      .filter((name) => name.trim() !== '')
    const isType = type !== undefined || (isList && list.length > 0 && list.every((name) => /^\s*type /.test(name)))
    return { file: normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts'), isType }
  })
}

/** Finds the circles of a graph: the strongly connected components with more than one node. */
export function circles(graph) {
  const [index, low, stack, found] = [new Map(), new Map(), [], []]
  const visit = (node) => {
    index.set(node, index.size)
    low.set(node, index.get(node))
    stack.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) visit(next)
      if (stack.includes(next)) low.set(node, Math.min(low.get(node), low.get(next)))
    }
    if (low.get(node) !== index.get(node)) return
    const part = stack.splice(stack.indexOf(node))
    if (part.length > 1) found.push(part.sort())
  }
  for (const node of graph.keys()) if (!index.has(node)) visit(node)
  return found
}

/** Matches the words of the argument block, and bindings by the number of words. */
const byHand = /\b(?:signedS|s)lots(?:32|64)\b|\.bind(?:Big|Struct)?\('\w+', [\w.]+, \w+/

/** Reports sources outside `ffi` that write by hand what the generator derives from a signature. */
export function slotProblems(name, sources) {
  return [...sources]
    .filter(([file, text]) => name !== 'ffi' && !file.endsWith('.gen.ts') && byHand.test(text))
    .map(
      ([file, text]) =>
        `packages/${name}/src/${file} has \`${byHand.exec(text)[0]}\`: bind the function by its signature with \`library.function\`, or for a hot path add it to tooling/bindgen/src/facts/uncheckedCalls.ts and run \`pnpm bindgen --from-spec\``,
    )
}

/** Returns what is wrong with the imports of a package. `sources` maps paths below `src` to texts. */
export function importProblems(name, sources) {
  const problems = []
  const files = new Map()
  const folders = new Map()
  for (const [file, text] of sources) {
    const imports = importsOf(file, text).filter(({ file: other }) => sources.has(other))
    files.set(file, new Set(imports.map((each) => each.file)))
    for (const { file: other, isType } of imports) {
      const [from, to] = [file, other].map((each) => (each.includes('/') ? each.split('/')[0] : each))
      if (
        name === 'driver' &&
        rings.includes(from) &&
        !(rings.indexOf(to) >= 0 && rings.indexOf(to) <= rings.indexOf(from))
      )
        problems.push(
          `packages/${name}/src/${file} imports ${other}, which is further out: move one of them, or what they share inward`,
        )
      if (from !== to && !isType) folders.set(from, (folders.get(from) ?? new Set()).add(to))
    }
  }
  for (const circle of circles(folders))
    problems.push(
      `packages/${name}/src: ${circle.join(', ')} import values from each other: move what they share to one of them`,
    )
  for (const circle of circles(files))
    if (circle.length > largestCircle)
      problems.push(
        `packages/${name}/src: ${circle.length} files form a circle of imports, at most ${largestCircle} may: ${circle.join(', ')}`,
      )
  return problems
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const problems = readdirSync(join(root, 'packages')).flatMap((name) => {
    const folder = join(root, 'packages', name, 'src')
    if (!existsSync(folder)) return []
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
    const sources = new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
    return [...importProblems(name, sources), ...slotProblems(name, sources)]
  })
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}

// Makes declarations as they are published, without members marked `@internal`. In the workspace, packages use each
// other's internals, so the declarations of a build contain them.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript-api'
import { publishablePackages } from './publishable.mjs'
import { capture, root, runMain, SetupError } from './workspace.mjs'

/**
 * Returns a declaration file without members marked `@internal`. Top-level declarations lose only their comment,
 * because the entries that packages have for each other export them.
 */
export function withoutInternal(text) {
  const source = ts.createSourceFile('file.d.ts', text, ts.ScriptTarget.Latest, true)
  const cuts = []
  const walk = (node) => {
    const comments = (node.jsDoc ?? []).filter((comment) => comment.getText().includes('@internal'))
    if (comments.length > 0 && isHidden(node)) cuts.push([node.getFullStart(), node.end])
    else {
      cuts.push(...comments.map(({ pos, end }) => [pos, end]))
      ts.forEachChild(node, walk)
    }
  }
  // Constructors stay, because a class without one could be created with `new` and no arguments. A member named by a
  // symbol stays, because the symbol may name an abstract member. A member also stays if another type names its type
  // (`['name']`).
  const isHidden = (node) =>
    (ts.isClassElement(node) || ts.isTypeElement(node)) &&
    node.name !== undefined &&
    !ts.isComputedPropertyName(node.name) &&
    !text.includes(`['${node.name.text}']`) &&
    !text.includes(`["${node.name.text}"]`)
  walk(source)
  return cuts
    .sort(([one], [other]) => other - one)
    .reduce((left, [start, end]) => left.slice(0, start) + left.slice(end), text)
    .replaceAll(/\n{2,}/g, '\n')
}

/** Removes internal members from the declarations of a packed package. */
export function publishDeclarations(tarball) {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-declarations-'))
  try {
    capture('tar', ['-xzf', tarball, '-C', folder])
    for (const file of declarationsIn(folder)) writeFileSync(file, withoutInternal(readFileSync(file, 'utf8')))
    capture('tar', ['-czf', tarball, '-C', folder, 'package'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function declarationsIn(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  return files
    .filter((file) => file.isFile() && /\.d\.[cm]?ts$/.test(file.name) && !file.parentPath.includes('node_modules'))
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => readFileSync(file, 'utf8').includes('@internal'))
}

/** Finds `@internal` that would be published, because it is not in the comment of a declaration or a member. */
export function internalProblems() {
  return [...publishablePackages().values()].flatMap(({ path }) =>
    declarationsIn(path).flatMap((file) =>
      withoutInternal(readFileSync(file, 'utf8'))
        .split('\n')
        .filter((line) => line.includes('@internal'))
        .map(
          (line) =>
            `${relative(root, file)}: ${line.trim()}: put @internal into the docstring of a member or an export`,
        ),
    ),
  )
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(() => {
    const problems = internalProblems()
    if (problems.length > 0) throw new SetupError(problems.join('\n'))
    return 0
  })
}

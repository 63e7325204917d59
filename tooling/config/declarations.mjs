// Merges the declarations of a package into one file, `dist/declarations.d.ts`. The declaration files of the entries
// re-export from it. Declarations that no entry reaches are dropped, and those of bundled raw packages are included if
// the package names them. This saves users about a hundred small files to install and to read.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript-api'

const target = 'dist/declarations.d.ts'

/** Entries that only the bundles of other packages import, never a source. They need no types. */
const isForBundles = (entry) => /^dist\/internal(?:Basics)?\.d\.ts$/.test(join(entry))

/**
 * `entryPoints` maps each import specifier of the package to its declaration file, as tsc wrote it. `rawFolder` returns
 * the folder with the declarations of a bundled raw package, or undefined for any other import.
 */
export function mergeDeclarations(entryPoints, rawFolder) {
  const entries = [...entryPoints.values()]
  const modules = new Map()
  const taken = new Map()
  const imports = new Map()
  const raw = new Map()
  const loaded = entries.map((entry) => load(join(entry)))
  const exported = loaded.map((module, i) => (isForBundles(entries[i]) ? new Map() : exportsOf(module)))
  for (const module of modules.values()) resolveImports(module)
  const own = [...modules.values()].map((module) => ({ module, declared: textsOf(module) }))
  const passedOn = exported.flatMap((found) => [...found.values()].map(({ local }) => local))
  const needed = reachable(
    own.flatMap(({ declared }) => declared),
    passedOn,
  )
  const mentioned = new Set([...passedOn, ...[...needed].flatMap((each) => [...each.mentioned])])
  for (const name of imports.keys()) if (!mentioned.has(name)) imports.delete(name)
  const sections = grouped(own, ({ module }) => relative('dist', dirname(module.file))).flatMap(([folder, all]) => {
    const left = all.flatMap(({ declared }) => declared).filter((each) => needed.has(each))
    return left.length === 0 ? [] : `// ${folder}/\n${left.map(({ text }) => text.trim()).join('\n')}\n`
  })
  const rest = [...raw].map(
    ([folder, names]) =>
      `// ${folder}\n${declarationsOf(
        folder,
        [...names].filter((name) => mentioned.has(name)),
      )}`,
  )
  const heads = entries.map((entry) => /^\/\*\*.*?\*\/\n/s.exec(modules.get(join(entry)).text)?.[0] ?? '')
  const lines = grouped(imports, ([, { from }]) => from).map(([from, names]) => {
    const list = names.map(([local, { name }]) => (local === name ? name : `${name} as ${local}`))
    return `import { ${list.sort().join(', ')} } from '${from}';\n`
  })
  const texts = entries.map((entry, i) => heads[i] + entryText(entry, exported[i]))
  for (const name of readdirSync('dist', { recursive: true })) if (name.endsWith('.d.ts')) rmSync(join('dist', name))
  writeFileSync(target, dense(`${lines.sort().join('')}${sections.join('')}${rest.join('')}export {};\n`))
  for (const [i, entry] of entries.entries()) writeFileSync(entry, texts[i])

  /** Loads a file and all files that it imports. */
  function load(file) {
    const known = modules.get(file)
    if (known !== undefined) return known
    const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
    const statements = source.statements.flatMap((each) => (isAugmentation(each) ? each.body.statements : each))
    const module = { file, text: source.text, statements, renamed: new Map() }
    modules.set(file, module)
    for (const statement of statements) {
      const from = statement.moduleSpecifier?.text
      if (from !== undefined && fileOf(module, from) !== undefined) load(fileOf(module, from))
      const { parent } = statement.parent
      const home = isAugmentation(parent) ? fileOf(module, parent.name.text) : file
      for (const { text } of namesOf(statement)) claim(module, text, `${home} ${text}`)
    }
    for (const [, from] of source.text.matchAll(/\bimport\("(\.[^"]+)"\)/g)) load(fileOf(module, from))
    return module
  }

  /** Returns the file of this package that an import refers to, or undefined if it is another package's. */
  function fileOf({ file }, specifier) {
    const entry = entryPoints.get(specifier)
    if (entry !== undefined) return join(entry)
    return specifier.startsWith('.') ? join(dirname(file), specifier.replace(/\.js$/, '.d.ts')) : undefined
  }

  /** Finds the name that each import of a module has in the merged file. */
  function resolveImports(module) {
    for (const statement of module.statements.filter(ts.isImportDeclaration)) {
      const from = statement.moduleSpecifier.text
      const file = fileOf(module, from)
      for (const { name, propertyName = name } of statement.importClause.namedBindings.elements) {
        const found =
          file === undefined ? { local: propertyName.text, from } : exportsOf(load(file)).get(propertyName.text)
        if (found.from !== undefined) add(module, name.text, found.local, found.from)
        else if (found.local !== name.text) module.renamed.set(name.text, found.local)
      }
    }
  }

  /** Gives a name of a module a form that is unique in the merged file. */
  function claim(module, name, meaning) {
    let free = name
    for (let i = 2; (taken.get(free) ?? meaning) !== meaning; i += 1) free = `${name}${i}`
    taken.set(free, meaning)
    if (free !== name) module.renamed.set(name, free)
    return free
  }

  function add(module, local, name, from) {
    const folder = rawFolder(from)
    if (folder === undefined) imports.set(claim(module, local, `${from} ${name}`), { from, name })
    else need(folder, name)
  }

  function need(folder, name) {
    raw.set(folder, (raw.get(folder) ?? new Set()).add(name))
  }

  /**
   * Returns the exports of a module. Each has its exported name, its name in the merged file, whether it is only a
   * type, and the package it comes from if that is another one.
   */
  function exportsOf(module) {
    if (module.exports !== undefined) return module.exports
    const found = new Map()
    for (const statement of module.statements) {
      const from = statement.moduleSpecifier?.text
      if (ts.isExportDeclaration(statement) && from !== undefined) {
        const { exportClause: clause, isTypeOnly } = statement
        const folder = rawFolder(from)
        const elements = clause?.elements.map((each) => ({
          name: each.name.text,
          original: (each.propertyName ?? each.name).text,
          type: isTypeOnly || each.isTypeOnly,
        }))
        if (folder !== undefined) {
          for (const { name, original, type } of elements ?? []) {
            need(folder, original)
            found.set(name, { name, local: original, type })
          }
          continue
        }
        const file = fileOf(module, from)
        if (file === undefined) {
          if (elements === undefined) found.set(from, { from, all: true, type: isTypeOnly })
          for (const { name, original, type } of elements ?? []) found.set(name, { name, local: original, type, from })
          continue
        }
        const theirs = exportsOf(load(file))
        if (elements === undefined)
          for (const [key, each] of theirs) found.set(key, { ...each, type: each.type || isTypeOnly })
        for (const { name, original, type } of elements ?? []) {
          const each = theirs.get(original)
          if (each === undefined) throw new Error(`${module.file}: ${original} of ${from} is not found`)
          found.set(name, { ...each, name, type: each.type || type })
        }
      } else if (ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) {
        for (const { text } of namesOf(statement))
          found.set(text, { name: text, local: module.renamed.get(text) ?? text, type: false })
      }
    }
    module.exports = found
    return found
  }

  function entryText(entry, found) {
    const path = relative(dirname(entry), target)
      .replace(/^(?!\.)/, './')
      .replace('.d.ts', '.js')
    const all = [...found.values()]
    const stars = all
      .filter((each) => each.all)
      .map(({ from, type }) => `export ${type ? 'type ' : ''}* from '${from}';\n`)
    const named = all.filter((each) => !each.all)
    const lists = grouped(named, ({ from }) => from ?? path).map(([from, list]) => {
      const texts = list.map(
        ({ name, local, type }) => `${type ? 'type ' : ''}${local === name ? name : `${local} as ${name}`}`,
      )
      return `export { ${texts.join(', ')} } from '${from}';\n`
    })
    return [...stars, ...lists].join('') || 'export {};\n'
  }

  /** Returns the declarations of a module, by their names in the merged file. */
  function textsOf(module) {
    const { statements, renamed } = module
    const finalName = (name) => renamed.get(name) ?? name
    return statements
      .filter((each) => namesOf(each).length > 0)
      .map((statement) => {
        const changes = []
        const mentioned = new Set()
        const walk = (node) => {
          if (ts.isIdentifier(node)) {
            mentioned.add(finalName(node.text))
            if (renamed.has(node.text) && isReference(node))
              changes.push([node.getStart(), node.end, finalName(node.text)])
          } else if (ts.isImportTypeNode(node)) {
            const start = node.isTypeOf ? node.argument.pos - 'import('.length : node.getStart()
            const name = importedName(module, node)
            mentioned.add(name)
            changes.push([start, node.qualifier.end, name])
          }
          ts.forEachChild(node, walk)
        }
        walk(statement)
        const from = statement.getFullStart()
        let text = statement.getFullText()
        for (const [start, end, name] of changes.reverse())
          text = text.slice(0, start - from) + name + text.slice(end - from)
        const names = namesOf(statement).map(({ text: name }) => finalName(name))
        // An interface that augments an exported declaration is exported with it.
        if (isAugmentation(statement.parent.parent)) text = text.replace(/(?<=^\s*)(?=interface)/, 'export ')
        return { names, mentioned, text: text.replaceAll(/^\/\/.*\n/gm, '') }
      })
  }

  /** Turns `import('./file.js').Name` into `Name`, as the merged file calls it. */
  function importedName(module, { argument, qualifier: { text: name } }) {
    const from = argument.literal.text
    const file = fileOf(module, from)
    if (file !== undefined) return exportsOf(load(file)).get(name).local
    add(module, name, name, from)
    return module.renamed.get(name) ?? name
  }

  /**
   * Returns the generated declarations of some names in a folder, and of all names that they use. The folder declares
   * each name once.
   */
  function declarationsOf(folder, names) {
    const statements = new Map()
    const foreign = new Map()
    for (const name of readdirSync(folder, { recursive: true }).filter((each) => each.endsWith('.d.ts'))) {
      const source = ts.createSourceFile(name, readFileSync(join(folder, name), 'utf8'), ts.ScriptTarget.Latest, true)
      for (const statement of source.statements) {
        for (const { text } of namesOf(statement)) statements.set(text, [...(statements.get(text) ?? []), statement])
        if (!ts.isImportDeclaration(statement) || statement.moduleSpecifier.text.startsWith('.')) continue
        for (const { name } of statement.importClause.namedBindings.elements)
          foreign.set(name.text, statement.moduleSpecifier.text)
      }
    }
    const chosen = new Set()
    const take = (name) => {
      const from = foreign.get(name)
      const meaning = from === undefined ? `${folder} ${name}` : `${from} ${name}`
      if (from === undefined && !statements.has(name)) return
      if ((taken.get(name) ?? meaning) !== meaning)
        throw new Error(`${name} of ${folder} is ${taken.get(name)} as well`)
      taken.set(name, meaning)
      if (from !== undefined) imports.set(name, { from, name })
      for (const statement of statements.get(name) ?? []) {
        if (chosen.has(statement)) continue
        chosen.add(statement)
        const walk = (node) =>
          ts.isIdentifier(node) ? isReference(node) && take(node.text) : ts.forEachChild(node, walk)
        // Here a function returns its status as a number, so the list of all statuses is not needed.
        if (ts.isFunctionDeclaration(statement)) for (const parameter of statement.parameters) walk(parameter)
        else walk(statement)
      }
    }
    for (const name of names) take(name)
    // Only this package's own calls use these declarations. The raw package documents them.
    const printer = ts.createPrinter({ removeComments: true })
    return [...chosen]
      .map((each) => `${printer.printNode(ts.EmitHint.Unspecified, statusless(each), each.getSourceFile())}\n`)
      .join('')
  }
}

function statusless(statement) {
  if (!ts.isFunctionDeclaration(statement)) return statement
  const { modifiers, name, parameters } = statement
  const number = ts.factory.createKeywordTypeNode(ts.SyntaxKind.NumberKeyword)
  return ts.factory.updateFunctionDeclaration(
    statement,
    modifiers,
    undefined,
    name,
    undefined,
    parameters,
    number,
    undefined,
  )
}

function grouped(all, keyOf) {
  const groups = new Map()
  for (const each of all) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each])
  return [...groups]
}

/**
 * Removes text without meaning: spaces, `declare` next to `export`, and semicolons, unless the next line would continue
 * the statement.
 */
function dense(text) {
  return (
    text
      .replaceAll(/^(?!\s*\*)(.*);$(?!\n\s*[([<?!=`])/gm, '$1')
      .replaceAll(/^export declare /gm, 'export ')
      // Internal members need no documentation in the published file.
      .replaceAll(/\/\*\*(?:(?!\*\/)[\s\S])*?@internal(?:(?!\*\/)[\s\S])*?\*\//g, '/** @internal */')
      .replaceAll(/^(?: {4})+/gm, (indent) => '\t'.repeat(indent.length / 4))
      .replaceAll(/^\t+ \*/gm, ' *')
  )
}

/** Is true for `declare module './file.js'`, which adds to the declarations of that file. */
function isAugmentation(node) {
  return node !== undefined && ts.isModuleDeclaration(node) && ts.isStringLiteral(node.name)
}

function namesOf(statement) {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name)
  return statement.name === undefined ? [] : [statement.name]
}

/** Returns the declarations that some names use, directly or through others. */
function reachable(declared, names) {
  const byName = grouped(
    declared.flatMap((each) => each.names.map((name) => ({ name, each }))),
    ({ name }) => name,
  )
  const known = new Map(byName)
  const found = new Set()
  const queue = [...names]
  for (const name of queue) {
    for (const { each } of known.get(name) ?? []) {
      if (found.has(each)) continue
      found.add(each)
      queue.push(...each.mentioned)
    }
  }
  return found
}

/**
 * Is true for an identifier that refers to a top-level declaration, not to a member, a parameter or a type parameter.
 */
function isReference(node) {
  const { parent } = node
  if (ts.isTypeReferenceNode(parent) || ts.isExpressionWithTypeArguments(parent) || ts.isTypeQueryNode(parent))
    return true
  if (ts.isQualifiedName(parent)) return parent.left === node
  const isDeclared = ts.isStatement(parent) || ts.isVariableDeclaration(parent) || ts.isTypePredicateNode(parent)
  return isDeclared || ts.isComputedPropertyName(parent) || ts.isPropertyAccessExpression(parent)
}

// Puts the declarations of a package into one file, `dist/declarations.d.ts`, from which the declarations of each entry
// pass theirs on: what no entry leads to is left out, and what is named of raw packages that are bundled in comes
// along. Some hundred small files less to install and to read.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript-api'

const target = 'dist/declarations.d.ts'

/** Entries that the bundles of other packages import, and no source: they need no types. */
const isForBundles = (entry) => /^dist\/internal(?:Basics)?\.d\.ts$/.test(join(entry))

/**
 * `entryPoints` are the declarations of the package's entry points, as tsc wrote them, by the names that programs
 * import them by. `rawFolder` tells where the declarations of a raw package lie that is bundled in, and answers
 * undefined for other imports.
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

  /** A file and those that it leads to. */
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

  /** The file of this package behind an import, if it is one. */
  function fileOf({ file }, specifier) {
    const entry = entryPoints.get(specifier)
    if (entry !== undefined) return join(entry)
    return specifier.startsWith('.') ? join(dirname(file), specifier.replace(/\.js$/, '.d.ts')) : undefined
  }

  /** What the names that a module imports are called in the one file. */
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

  /** Makes a name of a module one that means nothing else anywhere. */
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
   * What a module exports: the name, what it is called in the one file, whether as a type alone, or from which other
   * package.
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

  /** The declarations of a module, by the names that they have in the one file. */
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
        // What is added to an exported declaration is exported with it.
        if (isAugmentation(statement.parent.parent)) text = text.replace(/(?<=^\s*)(?=interface)/, 'export ')
        return { names, mentioned, text: text.replaceAll(/^\/\/.*\n/gm, '') }
      })
  }

  /** `import('./file.js').Name` is `Name` in the one file. */
  function importedName(module, { argument, qualifier: { text: name } }) {
    const from = argument.literal.text
    const file = fileOf(module, from)
    if (file !== undefined) return exportsOf(load(file)).get(name).local
    add(module, name, name, from)
    return module.renamed.get(name) ?? name
  }

  /**
   * The generated declarations of the names in a folder, with all that they name in turn. There every name is declared
   * once.
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
        // The status that a function returns is a number here, without the list of all.
        if (ts.isFunctionDeclaration(statement)) for (const parameter of statement.parameters) walk(parameter)
        else walk(statement)
      }
    }
    for (const name of names) take(name)
    // They are for this package's own calls: what they do is told in the raw package.
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

/** Without what says nothing: spaces, `declare` beside `export`, and semicolons but where the next line would go on. */
function dense(text) {
  return (
    text
      .replaceAll(/^(?!\s*\*)(.*);$(?!\n\s*[([<?!=`])/gm, '$1')
      .replaceAll(/^export declare /gm, 'export ')
      // What is not for programs needs no words there.
      .replaceAll(/\/\*\*(?:(?!\*\/)[\s\S])*?@internal(?:(?!\*\/)[\s\S])*?\*\//g, '/** @internal */')
      .replaceAll(/^(?: {4})+/gm, (indent) => '\t'.repeat(indent.length / 4))
      .replaceAll(/^\t+ \*/gm, ' *')
  )
}

/** `declare module './file.js'`, which adds to what that file declares. */
function isAugmentation(node) {
  return node !== undefined && ts.isModuleDeclaration(node) && ts.isStringLiteral(node.name)
}

function namesOf(statement) {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name)
  return statement.name === undefined ? [] : [statement.name]
}

/** The declarations that some names lead to. */
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

/** Whether an identifier means what is declared at the top, and not a member, a parameter or a type parameter. */
function isReference(node) {
  const { parent } = node
  if (ts.isTypeReferenceNode(parent) || ts.isExpressionWithTypeArguments(parent) || ts.isTypeQueryNode(parent))
    return true
  if (ts.isQualifiedName(parent)) return parent.left === node
  const isDeclared = ts.isStatement(parent) || ts.isVariableDeclaration(parent) || ts.isTypePredicateNode(parent)
  return isDeclared || ts.isComputedPropertyName(parent) || ts.isPropertyAccessExpression(parent)
}

// What the packages export, from their declarations: names, signatures, docstrings.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript-api'

export interface Docs {
  /** Markdown, with `{@link …}` as it was written. */
  readonly text: string
  readonly tags: readonly { readonly name: string; readonly text: string }[]
}

export interface Member {
  readonly name: string
  readonly group: 'Construction' | 'Methods' | 'Properties'
  readonly signatures: readonly string[]
  readonly docs: Docs
}

export type Kind = 'class' | 'function' | 'constant' | 'interface' | 'type'

export interface Export {
  readonly name: string
  readonly kind: Kind
  /** The folder of the package where its page is. */
  readonly home: string
  /** What a program imports it from, its home first. */
  readonly entries: readonly string[]
  /** The file that declares it, within its package's `dist`. */
  readonly file: string
  readonly signatures: readonly string[]
  readonly docs: Docs
  readonly members: readonly Member[]
}

interface Entry {
  readonly folder: string
  readonly specifier: string
  readonly types: string
}

/** What packages of this family import from each other: not for programs. */
const ownUse = /^@shoal\/cli\b|\/(?:internal|public|basics|shared|common|calls)$/

/** The entries that programs import. */
export function entriesOf(packages: string): Entry[] {
  return readdirSync(packages).flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(packages, folder, 'package.json'), 'utf8')) as {
      readonly name: string
      readonly exports: { readonly [path: string]: string | { readonly types?: string } }
    }
    return Object.entries(manifest.exports).flatMap(([path, target]) => {
      if (typeof target === 'string' || target.types === undefined) return []
      const specifier = join(manifest.name, path)
      return ownUse.test(specifier) ? [] : [{ folder, specifier, types: join(packages, folder, target.types) }]
    })
  })
}

/** All that programs can import, once each, however many packages pass it on. */
export function readExports(packages: string): Export[] {
  const entries = entriesOf(packages)
  const options = { module: ts.ModuleKind.NodeNext, skipLibCheck: true, types: [], lib: ['lib.esnext.d.ts'] }
  const program = ts.createProgram(
    entries.map(({ types }) => types),
    options,
  )
  const checker = program.getTypeChecker()
  const found = new Map<ts.Symbol, { name: string; entries: Entry[] }>()
  for (const entry of entries) {
    const source = program.getSourceFile(entry.types)
    const module = source && checker.getSymbolAtLocation(source)
    if (module === undefined) throw new Error(`${entry.types} is not built.`)
    for (const exported of checker.getExportsOfModule(module)) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
      const known = found.get(symbol)
      if (known !== undefined) known.entries.push(entry)
      else if (!isInternal(symbol)) found.set(symbol, { name: exported.name, entries: [entry] })
    }
  }
  return [...found].map(([symbol, where]) => describe(symbol, where.name, where.entries))

  function describe(symbol: ts.Symbol, name: string, from: Entry[]): Export {
    const declarations = symbol.declarations ?? []
    const source = declarations[0]!.getSourceFile()
    const [declared = '', written = ''] = relative(packages, source.fileName).split('/dist/')
    // The declarations of a package that is not raw are in one file, where a line says which folder the next ones are
    // of.
    const sections = source.text.slice(0, declarations[0]!.getStart()).match(/^\/\/ .*$/gm)
    const file = written === 'declarations.d.ts' ? (sections?.at(-1) ?? '').slice(3) : written
    const home = from.some((entry) => entry.folder === declared) ? declared : from[0]!.folder
    const sorted = from.toSorted((one, other) => Number(other.folder === home) - Number(one.folder === home))
    const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0
    const isInterface = (symbol.flags & ts.SymbolFlags.Interface) !== 0
    const hasMembers = (isClass || isInterface) && !home.endsWith('-sys')
    return {
      name,
      kind: kindOf(symbol),
      home,
      entries: sorted.map(({ specifier }) => specifier),
      file: file.replace('.d.ts', ''),
      signatures: declarations.map((each) => (hasMembers ? headOf(each) : textOf(each))),
      docs: docsOf(symbol),
      members: hasMembers ? membersOf(symbol) : [],
    }
  }

  function membersOf(symbol: ts.Symbol): Member[] {
    const type = checker.getDeclaredTypeOfSymbol(symbol)
    const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0
    const statics = isClass ? checker.getPropertiesOfType(checker.getTypeOfSymbol(symbol)) : []
    const constructors = isClass ? (symbol.members?.get('__constructor' as ts.__String) ?? []) : []
    const own = [constructors, statics, checker.getPropertiesOfType(type)].flat().filter(isPublic)
    return own.map((member) => {
      const declarations = member.declarations ?? []
      const [first] = declarations
      const isMethod = first !== undefined && (ts.isMethodDeclaration(first) || ts.isMethodSignature(first))
      const isStatic = statics.includes(member)
      return {
        name: first === undefined || ts.isConstructorDeclaration(first) ? 'constructor' : nameOf(first),
        group: isStatic || member === constructors ? 'Construction' : isMethod ? 'Methods' : 'Properties',
        signatures: declarations.map(textOf),
        docs: docsOf(member),
      }
    })
  }

  function isPublic(member: ts.Symbol): boolean {
    const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected
    const declarations = member.declarations?.filter(
      (each) => !/\/lib\.[\w.]+\.d\.ts$/.test(each.getSourceFile().fileName),
    )
    if (declarations === undefined || declarations.length === 0 || isInternal(member)) return false
    if (declarations.some((each) => (ts.getCombinedModifierFlags(each) & hidden) !== 0)) return false
    // Names that packages of this family have for each other are symbols, too.
    if (/^\[(?!Symbol\.)/.test(nameOf(declarations[0]!)) && docsOf(member).text === '') return false
    return !/^(?:_[^_]|__#|#|prototype$)/.test(member.name)
  }

  function isInternal(symbol: ts.Symbol): boolean {
    return symbol.getJsDocTags(checker).some(({ name }) => name === 'internal')
  }

  function docsOf(symbol: ts.Symbol): Docs {
    const tags = symbol.getJsDocTags(checker)
    return {
      text: ts.displayPartsToString(symbol.getDocumentationComment(checker)),
      tags: tags.map(({ name, text }) => ({ name, text: ts.displayPartsToString(text) })),
    }
  }
}

function kindOf({ flags }: ts.Symbol): Kind {
  if (flags & ts.SymbolFlags.Class) return 'class'
  if (flags & ts.SymbolFlags.Function) return 'function'
  if (flags & ts.SymbolFlags.Interface) return 'interface'
  if (flags & ts.SymbolFlags.Variable) return 'constant'
  return 'type'
}

function nameOf(declaration: ts.Declaration): string {
  return ts.getNameOfDeclaration(declaration)?.getText() ?? ''
}

/** A declaration without its docstring, as it stands in the package. */
function textOf(declaration: ts.Declaration): string {
  const node = ts.isVariableDeclaration(declaration) ? declaration.parent : declaration
  return withoutExport(node.getText()).replace(/;$/, '').replaceAll('    ', '  ')
}

/** The same of a class or an interface, without what is in it. */
function headOf(declaration: ts.Declaration): string {
  if (!ts.isClassDeclaration(declaration) && !ts.isInterfaceDeclaration(declaration)) return textOf(declaration)
  const source = declaration.getSourceFile()
  return withoutExport(source.text.slice(declaration.getStart(), declaration.members.pos - 1)).trim()
}

function withoutExport(text: string): string {
  return text.replace(/^export /, '').replace(/^declare /, '')
}

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript-api'
import { describe, expect, it } from 'vitest'

const packages = fileURLToPath(new URL('../../../packages/', import.meta.url))
/** Entries that only other packages of this repository import. */
const ownUse =
  /^@shoal\/(?:cuda-sys|cublas-sys|nccl-sys|nvshmem-sys|nvml-sys|cli)\b|^@shoal\/ffi\/(?:calls|internal)$|^@shoal\/driver\/(?:shared|basics)$/

/** The declarations behind each entry that programs import. */
const entries = readdirSync(packages)
  .filter((name) => existsSync(join(packages, name, 'package.json')))
  .flatMap((name) => {
    const { exports } = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')) as {
      exports: { readonly [entry: string]: string | { readonly types?: string } }
    }
    return Object.entries(exports).flatMap(([entry, target]) => {
      const types = typeof target === 'string' ? undefined : target.types
      return types === undefined ? [] : [[`@shoal/${join(name, entry)}`, join(packages, name, types)] as const]
    })
  })
  .filter(([entry]) => !ownUse.test(entry))

const program = ts.createProgram(
  entries.map(([, file]) => file),
  { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, skipLibCheck: true, types: [] },
)
const checker = program.getTypeChecker()

const isInternal = (symbol: ts.Symbol): boolean => symbol.getJsDocTags(checker).some(({ name }) => name === 'internal')
const hasText = (symbol: ts.Symbol): boolean =>
  symbol.getDocumentationComment(checker).length > 0 ||
  symbol.getJsDocTags(checker).some(({ name }) => name === 'throws' || name === 'param')

/** Names that come from the driver, ECMAScript or a table of dtypes. The type that contains them explains them. */
const namedElsewhere = /^[A-Z0-9_]+$|^cause$|^(?:[iuf]\d+\w*|bf16|complex\d+|bool)$/

/** Is true for a method, a property or a field that programs see. */
function isMember({ name: own, declarations = [] }: ts.Symbol): boolean {
  if (namedElsewhere.test(own)) return false
  return declarations.some((each) => {
    const { name } = each as ts.NamedDeclaration
    if (name === undefined || !(ts.isIdentifier(name) || ts.isStringLiteral(name))) return false
    if (ts.isTypeParameterDeclaration(each) || ts.isParameter(each)) return false
    return (ts.getCombinedModifierFlags(each) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) === 0
  })
}

function membersOf(symbol: ts.Symbol): ts.Symbol[] {
  const { Class, Interface } = ts.SymbolFlags
  if ((symbol.flags & (Class | Interface)) === 0) return []
  const own = [...(symbol.members?.values() ?? [])]
  return (symbol.flags & Class) === 0 ? own : [...own, ...(symbol.exports?.values() ?? [])]
}

function withoutDocstring(file: string): string[] {
  const source = program.getSourceFile(file)
  const module = source && checker.getSymbolAtLocation(source)
  if (module === undefined) throw new Error(`${file} is not built`)
  return checker.getExportsOfModule(module).flatMap((exported) => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    if (isInternal(symbol)) return []
    const members = membersOf(symbol).filter((member) => isMember(member) && !isInternal(member) && !hasText(member))
    const names = members.map(({ name }) => `${exported.name}.${name}`)
    return hasText(symbol) ? names : [exported.name, ...names]
  })
}

describe('every public export and each of its members has a docstring', () => {
  it.each(entries)('%s', (_, file) => {
    expect(withoutDocstring(file)).toEqual([])
  })

  it('including the entries of all packages', () => {
    expect(entries.map(([entry]) => entry)).toEqual(
      expect.arrayContaining([
        '@shoal/types',
        '@shoal/ffi',
        '@shoal/driver/graph',
        '@shoal/runtime/graph',
        '@shoal/nccl',
      ]),
    )
  })
})

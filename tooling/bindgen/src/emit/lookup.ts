import type { FunctionSpec, LibrarySpecFile } from '../spec/types.js'
import { SourceFile } from './source.js'

/** The tables that a package's hand-written library.ts uses to resolve symbols. */
export function emitLookup(spec: LibrarySpecFile): SourceFile {
  const file = new SourceFile('lookup.gen.ts')
  if (spec.library === 'driver') emitDriverLookup(file, spec)
  if (spec.library === 'runtime') emitRuntimeLookup(file, spec)
  return file
}

function emitDriverLookup(file: SourceFile, spec: LibrarySpecFile): void {
  const renamed = unique(
    spec.functions
      .filter(({ symbol, lookup }) => symbol !== lookup)
      .map(({ symbol, lookup, since }) => `  '${lookup}@${since}': '${symbol}',`),
  )
  const suffixes = unique(
    spec.functions.flatMap(({ symbol, lookup, since, perThreadSymbol }) =>
      perThreadSymbol ? [`  '${lookup}@${since}': '${perThreadSymbol.slice(symbol.length)}',`] : [],
    ),
  )
  for (const { name, since, perThreadSince } of spec.functions) {
    if (perThreadSince !== undefined && perThreadSince !== Math.max(since, 7000)) {
      throw new Error(`${name}: its per-thread variant came with ${perThreadSince}, which the resolver does not expect`)
    }
  }
  file.add(
    ...lazyTable(
      'Exported symbol of each ABI that is not exported under its plain name, by name and version.',
      'versionedSymbols',
      renamed,
    ),
    '',
    ...lazyTable(
      'Ending of the symbol of the per-thread-default-stream variant, by name and version. All came with CUDA 7.0 or later.',
      'perThreadSuffixes',
      suffixes,
    ),
  )
}

function emitRuntimeLookup(file: SourceFile, spec: LibrarySpecFile): void {
  file.add(
    '/** Version of the headers whose signatures were generated. */',
    `export const generatedVersion = ${spec.headerVersion}`,
    '',
    '/** For each version since 11.0 that brought functions one of them, newest first. */',
    'export const versionMarkers: readonly (readonly [version: number, symbol: string])[] = [',
    ...markers(spec).map(({ since, symbol }) => `  [${since}, '${symbol}'],`),
    ']',
    '',
    '/** Symbol of the per-thread-default-stream variant. */',
    'export const perThreadSymbols: Readonly<Record<string, string>> = {',
    ...spec.functions.flatMap(({ symbol, perThreadSymbol }) =>
      perThreadSymbol ? [`  ${symbol}: '${perThreadSymbol}',`] : [],
    ),
    '}',
    '',
    '/** Majors of libcudart in which a function of this name has another signature. */',
    'export const otherMajors: Readonly<Record<string, readonly number[]>> = {',
    ...spec.functions.flatMap(({ symbol, otherMajors }) =>
      otherMajors ? [`  ${symbol}: [${otherMajors.join(', ')}],`] : [],
    ),
    '}',
  )
}

function markers(spec: LibrarySpecFile): FunctionSpec[] {
  const plain = spec.functions.filter(
    ({ since, otherMajors, platform, header }) =>
      since >= 11000 && !otherMajors && !platform && header === 'cuda_runtime_api.h',
  )
  const versions = [...new Set(plain.map(({ since }) => since))].sort((a, b) => b - a)
  return versions.map((version) => plain.find(({ since }) => since === version) as FunctionSpec)
}

/** A table that is created when the first symbol is resolved, so that the import does not evaluate it. */
function lazyTable(about: string, name: string, entries: readonly string[]): string[] {
  const type = 'Readonly<Record<string, string>>'
  return [
    `let ${name}_: ${type} | undefined`,
    '',
    `/** ${about} */`,
    `export function ${name}(): ${type} {`,
    `  ${name}_ ??= {`,
    ...entries.map((entry) => `  ${entry}`),
    '  }',
    `  return ${name}_`,
    '}',
  ]
}

function unique(lines: readonly string[]): string[] {
  return [...new Set(lines)]
}

import type { LibrarySpecFile } from '../spec/types.js'
import { SourceFile } from './source.js'
import type { SymbolTable } from './symbols.js'

/** Layouts and initial values of structs that grew, for hand-written code that creates them for a version. */
export function emitVersionedStructs(spec: LibrarySpecFile, symbols: SymbolTable): SourceFile {
  const file = new SourceFile('versionedStructs.gen.ts')
  for (const { struct, initializer, initial, runs } of spec.versionedStructs ?? []) {
    file.useType('../versionedStruct.js', 'VersionedStruct')
    const type = symbols.typeName(file, struct)
    file.add(
      `/** What \`${initializer}\` makes, in every version of the library. */`,
      `export const ${struct}_versions: VersionedStruct<${type}> = {`,
      `  name: '${struct}',`,
      `  initial: { ${initial.map(([field, value]) => `${field}: ${literal(spec, struct, field, value)}`).join(', ')} },`,
      `  texts: [${textsOf(spec, struct)}],`,
      '  runs: [',
      ...runs.flatMap(({ initialized, layouts }) => [
        `    { initialized: ${initialized}, layouts: [`,
        ...layouts.map(({ since, struct: name }) => `      [${since}, ${symbols.valueName(file, name)}],`),
        '    ] },',
      ]),
      '  ],',
      '}',
      '',
    )
  }
  return file
}

function textsOf(spec: LibrarySpecFile, struct: string): string {
  const fields = spec.structs.find(({ name }) => name === struct)?.fields ?? []
  return fields
    .filter(({ ctype }) => ctype === 'const char *')
    .map(({ name }) => `'${name}'`)
    .join(', ')
}

function literal(spec: LibrarySpecFile, struct: string, field: string, value: number): string {
  const type = spec.structs.find(({ name }) => name === struct)?.fields.find(({ name }) => name === field)?.type
  if (type?.kind === 'bool') return String(value !== 0)
  return type?.kind === 'pointer' || type?.kind === 'u64' ? `${value}n` : String(value)
}

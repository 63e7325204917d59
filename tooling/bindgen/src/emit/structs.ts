import type { FieldSpec, FieldType, LibrarySpecFile, StructSpec } from '../spec/types.js'
import { structFileOf } from './areas.js'
import { SourceFile } from './source.js'
import type { SymbolTable } from './symbols.js'

/**
 * Assigns each struct to a file, by subject; a nested struct goes to the file of its outer struct. Files whose structs
 * need each other are merged, because two files must not import each other.
 */
export function placeStructs(spec: LibrarySpecFile): Map<string, string> {
  const byName = new Map(spec.structs.map((entry) => [entry.name, entry]))
  const subject = new Map<string, string>()
  for (const { name } of spec.structs) {
    const outer = spec.structs.find(
      (other) => other.ctype && name.startsWith(`${other.name}_`) && !byName.get(name)?.ctype,
    )
    subject.set(name, structFileOf(outer?.name ?? name))
  }
  for (;;) {
    const edges = new Map<string, Set<string>>()
    for (const entry of spec.structs) {
      const from = subject.get(entry.name) as string
      for (const needed of dependencies(entry)) {
        const to = subject.get(needed) as string
        if (from !== to) edges.set(from, (edges.get(from) ?? new Set()).add(to))
      }
    }
    const cycle = findCycle(edges)
    if (!cycle) break
    const [target, ...others] = [...cycle].sort()
    for (const [name, area] of subject) if (others.includes(area)) subject.set(name, target as string)
  }
  const files = new Map<string, string>()
  for (const entry of spec.structs) {
    const path = `structs/${subject.get(entry.name)}.gen.ts`
    files.set(entry.name, path)
    for (const alias of entry.aliases) files.set(alias, path)
  }
  return files
}

function findCycle(edges: ReadonlyMap<string, ReadonlySet<string>>): Set<string> | undefined {
  const reach = (from: string, seen: Set<string>): Set<string> => {
    for (const to of edges.get(from) ?? []) {
      if (!seen.has(to)) reach(to, seen.add(to))
    }
    return seen
  }
  for (const from of edges.keys()) {
    const reached = reach(from, new Set())
    if (reached.has(from)) return new Set([...reached].filter((other) => reach(other, new Set()).has(from)))
  }
  return undefined
}

function dependencies(entry: StructSpec): string[] {
  return entry.fields.flatMap(({ type }) => (type.kind === 'struct' ? [type.type] : []))
}

/** Codecs of structs and unions, one file per subject, in dependency order. */
export function emitStructs(spec: LibrarySpecFile, symbols: SymbolTable): SourceFile[] {
  const byName = new Map(spec.structs.map((entry) => [entry.name, entry]))
  const files = new Map<string, SourceFile>()
  const done = new Set<string>()
  const emit = (entry: StructSpec): void => {
    if (done.has(entry.name)) return
    done.add(entry.name)
    for (const needed of dependencies(entry)) emit(byName.get(needed) as StructSpec)
    const path = symbols.structFiles.get(entry.name) as string
    const file = files.get(path) ?? new SourceFile(path)
    files.set(path, file)
    emitStruct(file, symbols, entry)
  }
  for (const entry of spec.structs) emit(entry)
  return [...files.values()]
}

function emitStruct(file: SourceFile, symbols: SymbolTable, entry: StructSpec): void {
  file.use('@shoal/ffi', 'defineStructCodec')
  file.useType('@shoal/ffi', 'StructCodec')
  const what = entry.union ? 'union' : 'struct'
  file.add(
    `/** C ${what} \`${entry.name}\`: ${entry.size} bytes, aligned to ${entry.alignment}. */`,
    `export interface ${entry.name} {`,
    ...entry.fields.map((field) => `  /** \`${field.ctype}\` */\n  ${field.name}: ${fieldType(file, symbols, field)}`),
    '}',
    `/** Reads and writes C ${what} \`${entry.name}\`. */`,
    `export const ${entry.name}: StructCodec<${entry.name}> = /* @__PURE__ */ defineStructCodec<${entry.name}>({`,
    `  name: '${entry.name}',`,
    `  size: ${entry.size},`,
    `  alignment: ${entry.alignment},`,
    '  fields: [',
    ...entry.fields.map(
      (field) =>
        `    { name: '${field.name}', offset: ${field.offset}, kind: ${fieldKind(file, symbols, field.type)}${field.count === undefined ? '' : `, count: ${field.count}`} },`,
    ),
    '  ],',
    '})',
  )
  for (const alias of entry.aliases) {
    if (/_v\d+$/.test(alias)) continue
    file.add(
      `/** Same as {@link ${entry.name}}. */`,
      `export type ${alias} = ${entry.name}`,
      `export const ${alias} = ${entry.name}`,
    )
  }
  file.add('')
}

function fieldKind(file: SourceFile, symbols: SymbolTable, type: FieldType): string {
  switch (type.kind) {
    case 'struct':
      return symbols.valueName(file, type.type)
    case 'enum':
      return type.signed ? "'i32'" : "'u32'"
    case 'handle':
    case 'callback':
      return "'pointer'"
    case 'deviceptr':
      return "'u64'"
    default:
      return `'${type.kind}'`
  }
}

// Handles in structs are plain bigints, so that a value that was read can be passed on and written without casts.
function fieldType(file: SourceFile, symbols: SymbolTable, { type, count }: FieldSpec): string {
  if (count !== undefined && (type.kind === 'i8' || type.kind === 'u8')) return 'Uint8Array'
  const element = elementType(file, symbols, type)
  return count === undefined ? element : `${element}[]`
}

function elementType(file: SourceFile, symbols: SymbolTable, type: FieldType): string {
  switch (type.kind) {
    case 'struct':
    case 'enum':
      return symbols.typeName(file, type.type)
    case 'bool':
      return 'boolean'
    case 'i64':
    case 'u64':
    case 'pointer':
    case 'handle':
    case 'callback':
    case 'deviceptr':
      return 'bigint'
    default:
      return 'number'
  }
}

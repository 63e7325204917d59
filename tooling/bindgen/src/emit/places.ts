import { type LibraryName, type LibraryRecord, libraryRecord } from '../../../libraries/index.mjs'
import type { LibrarySpecFile } from '../spec/types.js'
import { SourceFile } from './source.js'

/** The data to find the library and read its version, from the library's record. */
export function emitPlaces(spec: LibrarySpecFile): SourceFile {
  const record = libraryRecord(spec.library)
  return record.places.resolvesItself ? emitFacts(record) : emitWholeLibrary(record)
}

/** The module that exports the library object, relative to the `generated` folder. */
export function libraryModule(id: LibraryName): string {
  return libraryRecord(id).places.resolvesItself ? '../library.js' : 'library.gen.js'
}

/** Only the data, for a package that resolves symbols itself. */
function emitFacts(record: LibraryRecord): SourceFile {
  const file = new SourceFile('places.gen.ts')
  file.useType('@shoal/ffi', 'LibrarySpec')
  file.add(
    '/** How the library is found. */',
    'export const places: LibrarySpec = {',
    ...factsOf(record, file).map((line) => `  ${line}`),
    '}',
  )
  return file
}

function emitWholeLibrary(record: LibraryRecord): SourceFile {
  const { id, places, version } = record
  const file = new SourceFile('library.gen.ts')
  file.use('@shoal/ffi', 'defineLibrary')
  file.useType('@shoal/ffi', 'NativeLibrary')
  file.use('@shoal/ffi/calls', 'versionReader')
  const options = [
    ...(version.without === undefined ? [] : [`without: ${version.without}`]),
    ...(version.returnsNothing ? ['returnsNothing: true'] : []),
    ...(version.byPart ? ['byPart: true'] : []),
  ]
  const last = options.length === 0 ? '' : `, { ${options.join(', ')} }`
  const note = places.note === undefined ? [] : [places.note]
  file.add(
    `/** ${[`${places.linux[0]?.replace(/\.so.*/, '')}. Nothing is loaded before the first call.`, ...note].join(' ')} */`,
    `export const ${id}: NativeLibrary = defineLibrary({`,
    ...factsOf(record, file).map((line) => `  ${line}`),
    `  versionOf: versionReader('${version.function}', ${version.parts}, '${version.format}'${last}),`,
    '})',
  )
  return file
}

const formats = { cuda: 'formatCudaVersion', nccl: 'formatNcclVersion', nvshmem: 'formatNvshmemVersion' } as const

function factsOf({ places, version }: LibraryRecord, file: SourceFile): string[] {
  const { note: _, resolvesItself: __, systemFolders, ...facts } = places
  const lines = Object.entries(facts).map(([name, value]) => `${name}: ${literal(value)},`)
  if (systemFolders !== undefined)
    lines.push(`systemFolders: process.platform === 'linux' ? ${literal(systemFolders)} : [],`)
  return [...lines, `formatVersion: ${file.use('@shoal/types', formats[version.format])},`]
}

function literal(value: string | boolean | RegExp | readonly string[]): string {
  if (value instanceof RegExp || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? `'${value}'` : `[${value.map((each) => `'${each}'`).join(', ')}]`
}

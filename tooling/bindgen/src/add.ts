import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { libraries, libraryRecord, type Product } from '../../libraries/index.mjs'
import { emitLibrary } from './emit/library.js'
import { versionText } from './emit/versions.js'
import { syncFolder, writeText } from './files.js'
import type { Library, Workspace } from './libraries.js'
import { type HeaderLocations, headerVersion } from './parse/headers.js'
import { describeBreaks, describeChanges } from './spec/changes.js'
import { History } from './spec/history.js'
import type { ExportsSpec, LibraryName, LibrarySpecFile } from './spec/types.js'

/** The argument of `--add`: the product and the version of the headers. */
export interface Addition {
  readonly product: Product
  /** in the library's numbering of versions */
  readonly version: number
}

/** @throws Error for anything but a form like `cuda=13.1`, `nvrtc=13.1` or `nccl=2.31.0` */
export function readAddition(text: string): Addition {
  const [, product, major, minor, patch] = /^(\w+)=(\d+)\.(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  const format = libraries.find(({ headers }) => headers.product === product)?.version.format
  if (product === undefined || format === undefined || (patch === undefined) !== (format === 'cuda'))
    throw new Error(`--add must be cuda=13.1, nccl=2.31.0, nvshmem=3.5.0 or the like, not ${text}`)
  const version =
    patch === undefined
      ? Number(major) * 1000 + Number(minor) * 10
      : Number(major) * 10000 + Number(minor) * 100 + Number(patch)
  return { product: product as Product, version }
}

/** Finds the library of the headers: a named file, or a file in a library folder next to the headers. */
function findLibrary(name: LibraryName, folder: string, named: readonly string[]): string | undefined {
  const { file } = libraryRecord(name)
  const beside = ['lib64', 'lib', 'targets/x86_64-linux/lib'].flatMap((each) => {
    const place = join(dirname(folder), each)
    return existsSync(place) ? readdirSync(place).map((entry) => join(place, entry)) : []
  })
  return [...named, ...beside].find((each) => file.test(basename(each)))
}

function exportsOf(name: LibraryName, file: string, version: number): { exports: ExportsSpec; symbols: string[] } {
  const { status, stdout, stderr } = spawnSync('nm', ['-D', '--defined-only', file], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`nm cannot read ${file}: ${stderr}`)
  const symbols = [...stdout.matchAll(/^\w+ [^A] ([^@\s]+)/gm)].map((match) => match[1] as string)
  const kind = basename(file).replace(/\.so.*/, '')
  const text = versionText(name, version).replace(/^\w+ /, '')
  return {
    exports: { title: `${kind} ${text}`, file: `${kind}-${text}`, version },
    symbols: [...new Set(symbols)].filter((symbol) => libraryRecord(name).symbols.test(symbol)).sort(),
  }
}

/**
 * Adds a version to the spec of a library. Updates the spec, its sources and the list of exported symbols.
 * @param folder the folder of the headers
 * @param named library files whose exports are listed
 * @returns the lines of the report, and a function that writes the files
 */
export function addVersion(
  workspace: Workspace,
  library: Library,
  headers: HeaderLocations,
  version: number,
  folder: string,
  named: readonly string[],
): { readonly lines: readonly string[]; readonly write: () => void } {
  const { name } = library
  const previous = workspace.readSpec(library)
  const [wanted, had] = [version, previous.headerVersion].map((each) => versionText(name, each))
  const told = headerVersion(name, folder)
  if (told !== version) throw new Error(`${name}: the headers are of ${versionText(name, told)}, not of ${wanted}`)
  if (version < previous.headerVersion) throw new Error(`${name}: the spec is of ${had} already, which is later`)
  const file = findLibrary(name, folder, named)
  const found = file === undefined ? undefined : exportsOf(name, file, version)
  const base: LibrarySpecFile = found ? { ...previous, exports: found.exports } : previous
  const history = new History(base, new Set(found?.symbols ?? workspace.readSymbols(previous.exports)), version)
  const spec = library.parse(headers, history)
  const sources = emitLibrary(spec)
  const unknown = [
    ...history.notes,
    ...describeBreaks(previous, spec),
    ...(found ? [] : [`what ${wanted} exports: name its library with --library; compared with ${spec.exports.title}`]),
  ]
  const lines = [
    `${name}: ${wanted} was added to the spec of ${had}`,
    ...describeChanges(previous, spec).map((line) => `  ${line}`),
    ...(unknown.length > 0 ? [`${name}: what could not be known`] : []),
    ...unknown.map((line) => `  ${line}`),
  ]
  const write = () => {
    if (found) writeText(workspace.symbolsFile(found.exports), `${found.symbols.join('\n')}\n`)
    workspace.writeSpec(library, spec)
    syncFolder(library.generatedFolder, sources)
  }
  return { lines, write }
}

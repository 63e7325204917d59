import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { renamedPairs, unlikePairs } from '../facts/callPairs.js'
import type { FunctionSpec, LibrarySpecFile, Lowered, ParameterSpec } from '../spec/types.js'
import { SourceFile } from './source.js'

/** A function that exists in both libcuda and libcudart. */
export interface CallPair {
  /** The key in the tables: the driver's name without its prefix. */
  readonly key: string
  readonly driver: string
  readonly runtime: string
}

/** The paths of both tables, relative to `packages`. */
export const tableFiles = {
  driver: 'driver/src/core/calls/driverCalls.gen.ts',
  runtime: 'runtime/src/calls/runtimeCalls.gen.ts',
} as const

/** The functions of libcuda and libcudart that take the same arguments and return a status. */
export function pairCalls(driver: LibrarySpecFile, runtime: LibrarySpecFile): CallPair[] {
  const byName = new Map<string, FunctionSpec>()
  for (const entry of driver.functions) {
    if (isCurrent(entry)) byName.set(entry.name.slice('cu'.length).toLowerCase(), entry)
  }
  const pairs: CallPair[] = []
  for (const entry of runtime.functions) {
    if (!isCurrent(entry) || Object.hasOwn(unlikePairs, entry.name)) continue
    const renamed = renamedPairs[entry.name]
    const partner = byName.get((renamed?.slice('cu'.length) ?? entry.name.slice('cuda'.length)).toLowerCase())
    if (partner === undefined || !areAlike(entry, partner)) {
      if (renamed !== undefined) throw new Error(`${entry.name} and ${renamed} are named as a pair and are none`)
      continue
    }
    const name = partner.name.slice('cu'.length)
    const key = (name[0] as string).toLowerCase() + name.slice(1)
    pairs.push({ key, driver: partner.name, runtime: entry.name })
  }
  return pairs.sort((a, b) => (a.key < b.key ? -1 : 1))
}

function isCurrent({ name, supersededBy, result, platform }: FunctionSpec): boolean {
  return supersededBy === undefined && result.kind === 'enum' && !/_v\d+$/.test(name) && platform === undefined
}

function areAlike(one: FunctionSpec, other: FunctionSpec): boolean {
  const [a, b] = [one.parameters, other.parameters]
  return a.length === b.length && a.every((parameter, index) => fitsSlot(parameter, b[index] as ParameterSpec))
}

/** True if both use the same slot format. Structures behind pointers must have equal sizes. */
function fitsSlot(one: ParameterSpec, other: ParameterSpec): boolean {
  const [a, b] = [one.pointee?.size, other.pointee?.size]
  return slotOf(one.lowered) === slotOf(other.lowered) && (a === undefined || b === undefined || a === b)
}

/** The slot format of a value. A handle in one library and a pointer in the other have the same format. */
function slotOf(lowered: Lowered): string {
  switch (lowered.kind) {
    case 'handle':
    case 'deviceptr':
    case 'callback':
    case 'pointer':
      return 'address'
    case 'enum':
    case 'integer':
      return 'integer'
    default:
      return lowered.kind
  }
}

/**
 * The pairs that the sources of the safe packages name, as text (`_call('…')`) or as a member of a table. A table of
 * all pairs would cost each import a millisecond and half a megabyte.
 */
export function sharedPairs(pairs: readonly CallPair[], packagesFolder: string): CallPair[] {
  const named = new Set(sourceTexts(packagesFolder).flatMap((text) => text.match(/(?<=['.])[a-z]\w+/g) ?? []))
  return pairs.filter(({ key }) => named.has(key)).sort((one, other) => (one.key < other.key ? -1 : 1))
}

function sourceTexts(packagesFolder: string): string[] {
  const folders = ['driver', 'runtime', 'nccl', 'nvshmem'].map((name) => join(packagesFolder, name, 'src'))
  return folders.filter(existsSync).flatMap((folder) => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    return files
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.gen.ts'))
      .map((file) => readFileSync(join(folder, file), 'utf8'))
  })
}

/** The sources of both tables, keyed by path relative to `packages`. */
export function emitCallTables(
  driver: LibrarySpecFile,
  runtime: LibrarySpecFile,
  packagesFolder: string,
): Map<string, string> {
  const pairs = sharedPairs(pairCalls(driver, runtime), packagesFolder)
  const driverFile = new SourceFile(tableFiles.driver)
  driverFile.add(
    '/** Functions of libcuda that libcudart has too, with the same arguments: by the name of libcuda without its prefix. */',
    'export const driverCalls = {',
    ...pairs.map((pair) => `  ${pair.key}: ${driverFile.use('@shoal/cuda-sys/driver', pair.driver)},`),
    '}',
    '',
    '/** The table of one of the two libraries. */',
    'export type PairedCalls = Readonly<typeof driverCalls>',
  )
  const runtimeFile = new SourceFile(tableFiles.runtime)
  const type = runtimeFile.useType('@shoal/driver/shared', 'PairedCalls')
  const other = pairs.filter((pair) => pair.runtime !== `cuda${pair.driver.slice('cu'.length)}`)
  runtimeFile.add(
    `const calls: { readonly [K in keyof ${type}]: (...args: never[]) => number } = {`,
    ...pairs.map((pair) => `  ${pair.key}: ${runtimeFile.use('@shoal/cuda-sys/runtime', pair.runtime)},`),
    '}',
    '',
    '/** The functions of libcudart behind the same table: their arguments lower alike, so they are called alike. */',
    `export const runtimeCalls = calls as unknown as ${type}`,
    '',
    '/** Those that are called otherwise than in libcuda. */',
    `export const runtimeNames: { readonly [K in keyof ${type}]?: string } = {`,
    ...other.map((pair) => `  ${pair.key}: '${pair.runtime}',`),
    '}',
  )
  return new Map([driverFile, runtimeFile].map((file) => [file.path, file.render()]))
}

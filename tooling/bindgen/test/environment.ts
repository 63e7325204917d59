import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { libraries, libraryRecord } from '../../libraries/index.mjs'
import { type Library, Workspace } from '../src/libraries.js'
import { clangVersion } from '../src/parse/clang.js'
import { compilerSources } from '../src/parse/compilers.js'
import { cublasSources } from '../src/parse/cublas.js'
import { driverSource } from '../src/parse/driver.js'
import { findHeaders, headerVersion, mainHeaders, productOf } from '../src/parse/headers.js'
import { standInHeaders } from '../src/parse/include.js'
import { ncclSource } from '../src/parse/nccl.js'
import { earlierLayouts } from '../src/parse/ncclStructs.js'
import { nvmlSource } from '../src/parse/nvml.js'
import { runtimeSource } from '../src/parse/runtime.js'
import { type LibraryName, type LibrarySpecFile, libraryNames } from '../src/spec/types.js'

export { type LibraryName, libraryNames }

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const headers = findHeaders({})

export const workspace = new Workspace()
const libraryOf = (name: LibraryName) => workspace.libraries.find((library) => library.name === name) as Library

export const generatedFolders = Object.fromEntries(
  libraryNames.map((name) => [name, libraryOf(name).generatedFolder]),
) as Record<LibraryName, string>

export function readSpec(name: LibraryName): LibrarySpecFile {
  return workspace.readSpec(libraryOf(name))
}

/** The exports of the real library that the spec was compared with. */
export function readExported(name: LibraryName): Set<string> {
  return workspace.readSymbols(readSpec(name).exports)
}

/** The reason why a test that needs the headers of a library cannot run, or undefined. */
export function noHeaders(name: LibraryName): string | undefined {
  const product = productOf(name)
  if (headers.cuda === undefined) return 'no cuda.h: set CUDA_HOME to a toolkit'
  if (headers[product] !== undefined) return undefined
  const { headers: record, places } = libraryRecord(name)
  const where = record.variables.include ?? record.variables.home ?? places.environment
  return `no ${mainHeaders[product]}: set ${where}`
}

/** The reason why there are no headers of the committed spec's version, or undefined. */
export function noMatchingHeaders(name: LibraryName): string | undefined {
  const missing = noHeaders(name)
  if (missing !== undefined) return missing
  const spec = readSpec(name)
  const found = headerVersion(name, headers[productOf(name)] as string)
  if (found === spec.headerVersion) return undefined
  return `the headers of ${name} are of version ${found}, the spec of ${spec.headerVersion}`
}

export function hasHeader(name: LibraryName, file: string): boolean {
  return existsSync(join(headers[productOf(name)] as string, file))
}

export function headerText(name: LibraryName, file: string): string {
  return readFileSync(join(headers[productOf(name)] as string, file), 'utf8')
}

export function noClang(): string | undefined {
  return clangVersion() === undefined ? 'no clang' : undefined
}

/** The includes of each library for a C++ program. */
export const prelude: Record<LibraryName, string> = {
  driver: driverSource,
  runtime: runtimeSource,
  nccl: `${ncclSource}${earlierLayouts(readSpec('nccl'))}\n`,
  nvshmem: '#include <nvshmem_host.h>\n',
  nvml: '#include <nvml.h>\n',
  ...compilerSources,
  ...cublasSources,
}

function includeFlags(): string[] {
  const folders = [...new Set(libraries.map((record) => headers[record.headers.product]))]
  return [standInHeaders, ...folders].filter((entry) => entry !== undefined).map((entry) => `-I${entry}`)
}

/** Runs g++'s preprocessor on a C++ source. */
export function preprocessCxx(source: string): string {
  return execFileSync('g++', ['-std=c++17', '-w', '-E', '-P', ...includeFlags(), '-x', 'c++', '-'], {
    input: source,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
}

/** The driver's includes for a program that sees the ABIs of all versions, each under its symbol. */
export const everyAbiPrelude = `#define __CUDA_API_VERSION_INTERNAL\n${driverSource}`

/** The same for other libraries with several ABIs. */
export const nvmlEveryAbiPrelude = nvmlSource

const scratch = scratchFolder()

/** Compiles a C++ program against the headers, runs it and returns its output. */
export function runCxx(source: string, flags: readonly string[] = []): string {
  const file = join(scratch, 'program.cpp')
  const program = join(scratch, 'program')
  writeFileSync(file, source)
  const includes = includeFlags()
  execFileSync('g++', ['-std=c++17', '-O0', '-w', ...includes, ...flags, '-o', program, file], { stdio: 'pipe' })
  return execFileSync(program, { encoding: 'utf8', maxBuffer: 1 << 28 })
}

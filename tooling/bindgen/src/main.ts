import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { addVersion, readAddition } from './add.js'
import { count } from './coverage/count.js'
import { coveragePage } from './coverage/page.js'
import { emitCallTables } from './emit/callTables.js'
import { emitDoctor } from './emit/doctor.js'
import { emitLibrary } from './emit/library.js'
import { emitEntryPoints, emitHeaders, emitUnsupported } from './emit/softwareDevice.js'
import { emitUncheckedCalls } from './emit/uncheckedCalls.js'
import { versionText } from './emit/versions.js'
import { compareFolder, firstDifference, readText, syncFolder, writeText } from './files.js'
import { type Library, Workspace } from './libraries.js'
import { type Options, readOptions, usage } from './options.js'
import { clangVersion } from './parse/clang.js'
import { findHeaders, type HeaderLocations, mainHeaders, productOf } from './parse/headers.js'
import type { LibrarySpecFile } from './spec/types.js'
import { formatSpec } from './spec/write.js'

interface Outcome {
  differences: string[]
  /** the reason why the headers were not compared */
  skipped?: string
}

/** The reason why the headers of a library cannot be read, or undefined. */
function obstacle(library: Library, headers: HeaderLocations, options: Options): string | undefined {
  if (options.fromSpec) return 'asked to leave the spec as it is'
  const missing = library.missing(headers)
  if (missing.length > 0) return `${missing.join(' and ')} not found; tried ${headers.tried.join(', ')}`
  if (clangVersion() === undefined) return 'no clang (install it, or name it in CLANG)'
  return undefined
}

function processLibrary(workspace: Workspace, library: Library, headers: HeaderLocations, options: Options): Outcome {
  const skipped = obstacle(library, headers, options)
  const committed = workspace.readSpec(library)
  const spec = skipped === undefined ? library.parse(headers, workspace.history(committed)) : committed
  if (committed.headerVersion !== spec.headerVersion) {
    const [had, found] = [committed, spec].map(({ headerVersion }) => versionText(library.name, headerVersion))
    return { differences: [`the spec is of ${had}, these headers are of ${found}: --add adds a version`] }
  }
  const wanted = options.headerVersion
  if (wanted !== undefined && !versionText(library.name, spec.headerVersion).endsWith(` ${wanted}`)) {
    console.log(
      `${library.name}: asked for headers of version ${wanted}, the spec is of ${versionText(library.name, spec.headerVersion)}`,
    )
  }
  const files = emitLibrary(spec)
  const differences: string[] = []
  if (options.check) {
    const text = formatSpec(spec)
    const current = readText(library.specFile)
    if (current !== text)
      differences.push(
        `the spec differs from the headers${current === undefined ? '' : firstDifference(current, text)}`,
      )
    differences.push(...compareFolder(library.generatedFolder, files))
  } else {
    if (skipped === undefined) workspace.writeSpec(library, spec)
    syncFolder(library.generatedFolder, files)
    console.log(
      `${library.name}: ${spec.functions.length} functions, ${spec.enums.length} enumerations, ${spec.structs.length} structs, ${files.size} files`,
    )
  }
  return { differences, ...(skipped === undefined ? {} : { skipped }) }
}

/** Writes or compares the coverage page, from the committed specs. Returns false if it differs. */
function processCoverage(workspace: Workspace, check: boolean): boolean {
  const { coverageFile, libraries } = workspace
  const specs = libraries.map((library) => workspace.readSpec(library))
  const page = coveragePage(specs.map((spec) => count(spec, workspace.readSymbols(spec.exports))))
  if (!check) {
    writeText(coverageFile, page)
    return true
  }
  const current = readText(coverageFile)
  if (current === page) {
    console.log('docs/coverage.md equals the specs')
    return true
  }
  console.error(`docs/coverage.md differs from the specs${current === undefined ? '' : firstDifference(current, page)}`)
  return false
}

/**
 * Writes or compares the files that depend on several specs and records: the tables of functions in both libcuda and
 * libcudart, the headers of the software device, and the libraries of the doctor. Returns false if one differs.
 */
function processShared(workspace: Workspace, check: boolean): boolean {
  const specs = workspace.libraries.map((library) => workspace.readSpec(library))
  const [driver, runtime] = specs as [LibrarySpecFile, LibrarySpecFile]
  const { names, defined } = workspace.readSoftwareDevice()
  const headers = [
    ...emitHeaders(specs, names),
    ...emitEntryPoints(driver, defined),
    ...emitUnsupported(driver, 'driver', defined),
    ...emitUnsupported(runtime, 'runtime', defined),
  ]
  let isSame = true
  const sources = [...emitCallTables(driver, runtime, workspace.packagesFolder), ...emitUncheckedCalls(specs)]
  for (const [path, text] of [...sources, ...headers, emitDoctor()]) {
    const file = join(workspace.packagesFolder, path)
    const current = readText(file)
    if (!check) writeText(file, text)
    else if (current !== text) {
      console.error(
        `packages/${path} differs from the specs${current === undefined ? '' : firstDifference(current, text)}`,
      )
      isSame = false
    }
  }
  if (check && isSame)
    console.log(
      'the call tables, the headers of the software device and the list of the doctor equal the specs and the records',
    )
  return isSame
}

/** Adds a version to the specs of a product's libraries. */
function add(workspace: Workspace, text: string, options: Options): number {
  if (options.headers === undefined) throw new Error('--add needs --headers FOLDER')
  const { product, version } = readAddition(text)
  const given = resolve(options.headers)
  const main = mainHeaders[product]
  const folder = [given, join(given, 'include')].find((each) => existsSync(join(each, main)))
  if (folder === undefined) throw new Error(`there is no ${main} in ${given}`)
  const headers = { ...findHeaders(options), [product]: folder }
  const additions = workspace.libraries
    .filter(({ name }) => productOf(name) === product)
    .map((library) => {
      const problem = obstacle(library, headers, options)
      if (problem !== undefined) throw new Error(`${library.name}: ${problem}`)
      return addVersion(workspace, library, headers, version, folder, options.libraries)
    })
  for (const { lines, write } of additions) {
    write()
    for (const line of lines) console.log(line)
  }
  processCoverage(workspace, false)
  processShared(workspace, false)
  return 0
}

function main(): number {
  const options = readOptions(process.argv.slice(2))
  if (options.help) {
    console.log(usage)
    return 0
  }
  const workspace = new Workspace(options.root)
  const { libraries } = workspace
  if (options.add !== undefined) return add(workspace, options.add, options)
  const headers = findHeaders(options)
  let failed = false
  const unknown = options.only.filter((name) => !libraries.some((library) => library.name === name))
  if (unknown.length > 0) {
    console.error(`no library ${unknown.join(', ')}; there are ${libraries.map(({ name }) => name).join(', ')}`)
    return 2
  }
  for (const library of libraries) {
    if (options.only.length > 0 && !options.only.includes(library.name)) continue
    const { differences, skipped } = processLibrary(workspace, library, headers, options)
    for (const difference of differences) console.error(`${library.name}: ${difference}`)
    if (differences.length > 0) failed = true
    if (skipped !== undefined && !options.fromSpec) {
      console.error(`${library.name}: headers not compared: ${skipped}`)
      if (!options.allowMissingHeaders) failed = true
    }
    if (options.check && differences.length === 0) {
      console.log(`${library.name}: ${skipped === undefined ? 'spec equals headers, ' : ''}sources equal spec`)
    }
  }
  // The page covers all libraries, so a check of a selection skips it.
  if ((!options.check || options.only.length === 0) && !processCoverage(workspace, options.check)) failed = true
  if ((!options.check || options.only.length === 0) && !processShared(workspace, options.check)) failed = true
  return failed ? 1 : 0
}

try {
  process.exitCode = main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}

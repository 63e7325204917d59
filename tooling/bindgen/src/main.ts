import { type Coverage, count } from './coverage/count.js'
import { coveragePage } from './coverage/page.js'
import { emitCallTables } from './emit/callTables.js'
import { emitLibrary } from './emit/library.js'
import { versionText } from './emit/versions.js'
import { compareFolder, firstDifference, readText, syncFolder, writeText } from './files.js'
import { coverageFile, type Library, libraries, packagesFolder } from './libraries.js'
import { type Options, readOptions, usage } from './options.js'
import { clangVersion } from './parse/clang.js'
import { findHeaders, type HeaderLocations } from './parse/headers.js'
import type { LibrarySpecFile } from './spec/types.js'
import { formatSpec } from './spec/write.js'

interface Outcome {
  differences: string[]
  /** why the headers could not be compared */
  skipped?: string
}

function committedSpec(library: Library): LibrarySpecFile | undefined {
  const text = readText(library.specFile)
  return text === undefined ? undefined : (JSON.parse(text) as LibrarySpecFile)
}

/** Why the headers of a library cannot be read, or undefined when they can. */
function obstacle(library: Library, headers: HeaderLocations, options: Options): string | undefined {
  if (options.fromSpec) return 'asked to leave the spec as it is'
  const missing = library.missing(headers)
  if (missing.length > 0) return `${missing.join(' and ')} not found; tried ${headers.tried.join(', ')}`
  if (clangVersion() === undefined) return 'no clang (install it, or name it in CLANG)'
  return undefined
}

function processLibrary(library: Library, headers: HeaderLocations, options: Options): Outcome {
  const skipped = obstacle(library, headers, options)
  const committed = committedSpec(library)
  const spec = skipped === undefined ? library.parse(headers) : committed
  if (spec === undefined) return { differences: [`no spec, and no headers to make it from: ${skipped}`] }
  if (committed && committed.headerVersion !== spec.headerVersion) {
    console.log(
      `${library.name}: the spec was written from ${versionText(library.name, committed.headerVersion)} headers, these are ${versionText(library.name, spec.headerVersion)}`,
    )
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
    if (skipped === undefined) writeText(library.specFile, formatSpec(spec))
    syncFolder(library.generatedFolder, files)
    console.log(
      `${library.name}: ${spec.functions.length} functions, ${spec.enums.length} enumerations, ${spec.structs.length} structs, ${files.size} files`,
    )
  }
  return { differences, ...(skipped === undefined ? {} : { skipped }) }
}

/** Writes or compares the page about all libraries, from the specs as they are committed. False when it differs. */
function processCoverage(check: boolean): boolean {
  const coverages = libraries.flatMap((library): Coverage[] => {
    const spec = committedSpec(library)
    const { title, file } = library.exports
    const symbols = new Set((readText(file) ?? '').split('\n').filter((line) => line !== ''))
    return spec === undefined ? [] : [count(spec, { title, symbols })]
  })
  const page = coveragePage(coverages)
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

/** Writes or compares the tables of what libcuda and libcudart both have, from the committed specs. False when one differs. */
function processCallTables(check: boolean): boolean {
  const specOf = (name: string): LibrarySpecFile =>
    committedSpec(libraries.find((library) => library.name === name) as Library) as LibrarySpecFile
  let isSame = true
  for (const [path, text] of emitCallTables(specOf('driver'), specOf('runtime'))) {
    const file = packagesFolder + path
    const current = readText(file)
    if (!check) writeText(file, text)
    else if (current !== text) {
      console.error(
        `packages/${path} differs from the specs${current === undefined ? '' : firstDifference(current, text)}`,
      )
      isSame = false
    }
  }
  if (check && isSame) console.log('the call tables equal the specs')
  return isSame
}

function main(): number {
  const options = readOptions(process.argv.slice(2))
  if (options.help) {
    console.log(usage)
    return 0
  }
  const headers = findHeaders(options)
  let failed = false
  const unknown = options.only.filter((name) => !libraries.some((library) => library.name === name))
  if (unknown.length > 0) {
    console.error(`no library ${unknown.join(', ')}; there are ${libraries.map(({ name }) => name).join(', ')}`)
    return 2
  }
  for (const library of libraries) {
    if (options.only.length > 0 && !options.only.includes(library.name)) continue
    const { differences, skipped } = processLibrary(library, headers, options)
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
  // The page is of all libraries: a check of some does not look at it.
  if ((!options.check || options.only.length === 0) && !processCoverage(options.check)) failed = true
  if ((!options.check || options.only.length === 0) && !processCallTables(options.check)) failed = true
  return failed ? 1 : 0
}

process.exitCode = main()

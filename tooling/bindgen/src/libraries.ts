import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { libraries } from '../../libraries/index.mjs'
import { listFiles, readText, writeText } from './files.js'
import { parseCompiler } from './parse/compilers.js'
import { parseCublas } from './parse/cublas.js'
import { parseDriver } from './parse/driver.js'
import { type HeaderLocations, mainHeaders } from './parse/headers.js'
import { parseNccl } from './parse/nccl.js'
import { parseNvml } from './parse/nvml.js'
import { parseNvshmem } from './parse/nvshmem.js'
import { parseRuntime } from './parse/runtime.js'
import { History } from './spec/history.js'
import type { ExportsSpec, LibraryName, LibrarySpecFile } from './spec/types.js'
import { formatSpec } from './spec/write.js'

const repository = fileURLToPath(new URL('../../../', import.meta.url))

/** A library that the generator knows: how to read its headers, and where its spec and sources are. */
export interface Library {
  name: LibraryName
  specFile: string
  generatedFolder: string
  /** Headers that were not found. The library can be parsed if the list is empty. */
  missing: (headers: HeaderLocations) => string[]
  parse: (headers: HeaderLocations, history: History) => LibrarySpecFile
}

type Parse = (headers: HeaderLocations, history: History) => LibrarySpecFile

/** Parses the headers of each library. The required folders exist. */
const parsers: Readonly<Record<LibraryName, Parse>> = {
  driver: ({ cuda }, history) => parseDriver(cuda as string, history),
  runtime: ({ cuda }, history) => parseRuntime(cuda as string, history),
  nccl: ({ cuda, nccl }, history) => parseNccl(nccl as string, cuda as string, history),
  nvshmem: ({ cuda, nvshmem }, history) => parseNvshmem(nvshmem as string, cuda as string, history),
  nvrtc: ({ nvrtc }, history) => parseCompiler('nvrtc', nvrtc as string, history),
  cublas: ({ cublas, cuda }, history) => parseCublas('cublas', cublas as string, cuda as string, history),
  cublasLt: ({ cublas, cuda }, history) => parseCublas('cublasLt', cublas as string, cuda as string, history),
  nvjitlink: ({ nvjitlink }, history) => parseCompiler('nvjitlink', nvjitlink as string, history),
  nvml: ({ nvml }, history) => parseNvml(nvml as string, history),
}

/**
 * The sources of a raw package or entry, relative to `packages`: `@shoal/cuda-sys/driver` is in `cuda-sys/src/driver`.
 */
function sourcesOf(module: string): string {
  const [, name, ...entry] = module.split('/')
  return [name, 'src', ...entry].join('/')
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The files that the generator reads and writes in a repository. */
export class Workspace {
  readonly libraries: readonly Library[]
  /** The coverage page. */
  readonly coverageFile: string
  /** The folder of the published packages. */
  readonly packagesFolder: string
  readonly digestsFile: string
  readonly #root: string

  constructor(root = repository) {
    this.#root = root
    this.coverageFile = `${root}/docs/coverage.md`
    this.digestsFile = `${root}/tooling/bindgen/spec/digests.txt`
    this.packagesFolder = `${root}/packages`
    this.libraries = libraries.map(({ id, module, headers: { product, needs } }) => ({
      name: id,
      specFile: `${root}/tooling/bindgen/spec/${id}.json`,
      generatedFolder: `${root}/packages/${sourcesOf(module)}/generated`,
      missing: (headers) =>
        [...needs, product].filter((each) => headers[each] === undefined).map((each) => mainHeaders[each]),
      parse: (headers, history) => history.complete(parsers[id](headers, history)),
    }))
  }

  /** @throws Error if the library has no spec, because the spec contains facts that no header has */
  readSpec({ name, specFile }: Library): LibrarySpecFile {
    const text = readText(specFile)
    if (text === undefined) throw new Error(`${name}: no spec at ${specFile}`)
    return JSON.parse(text) as LibrarySpecFile
  }

  /**
   * Writes a spec that was read from headers, and its digest. A spec with another digest was not written from headers.
   */
  writeSpec({ name, specFile }: Library, spec: LibrarySpecFile): void {
    const text = formatSpec(spec)
    writeText(specFile, text)
    const others = this.readDigests().filter(([library]) => library !== name)
    const lines = [...others, [name, digestOf(text)] as const].map((line) => `${line.join(' ')}\n`)
    writeText(this.digestsFile, lines.sort().join(''))
  }

  /** The digest of each spec when it was last written from headers. */
  readDigests(): [library: string, digest: string][] {
    const lines = (readText(this.digestsFile) ?? '').split('\n').filter((line) => line !== '')
    return lines.map((line) => line.split(' ') as [string, string])
  }

  symbolsFile({ file }: ExportsSpec): string {
    return `${this.#root}/tooling/bindgen/abi/${file}.symbols.txt`
  }

  /** The exports of a real library, from the lists in `abi`. */
  readSymbols(exports: ExportsSpec): Set<string> {
    return new Set((readText(this.symbolsFile(exports)) ?? '').split('\n').filter((line) => line !== ''))
  }

  /** The names in the sources of the software device and its tests, and the driver functions that it defines. */
  readSoftwareDevice(): { readonly names: ReadonlySet<string>; readonly defined: ReadonlySet<string> } {
    // On machines without the toolkit, the sweep's corner cases are compiled against these headers.
    const folders = [
      'packages/sim/native',
      'packages/sim/test',
      'tooling/sweep/native',
      'tooling/sweep/questions/corners',
    ]
      .map((name) => `${this.#root}/${name}`)
      .filter(existsSync)
    const files = folders.flatMap((folder) => listFiles(folder).map((file) => `${folder}/${file}`))
    const sources = files
      .filter((file) => /\.(cc|h|txt)$/.test(file) && !file.endsWith('.gen.h'))
      .map((file) => ({ file, text: readText(file) ?? '' }))
    const cuda = sources.filter(({ file }) => /\/native\/cuda(rt)?\/.*\.cc$/.test(file))
    // A definition, or a macro that expands to one, is at the start of a line.
    const definitions = cuda.flatMap(({ text }) => [
      ...text.matchAll(/^\w[\w ]*(?:[ (]|\* ?)(cu(?:da)?[A-Z]\w*)[(,]/gm),
    ])
    return {
      names: new Set(sources.flatMap(({ text }) => text.match(/\w+/g) ?? [])),
      defined: new Set(definitions.map(([, name]) => name as string)),
    }
  }

  history(spec: LibrarySpecFile, added?: number): History {
    return new History(spec, this.readSymbols(spec.exports), added)
  }
}

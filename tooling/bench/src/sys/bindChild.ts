// Started by imports.ts for each sample: imports packages, binds functions by calling them once, and prints the costs.
// Arguments: the file with the functions or an empty word, the number of functions to bind per package (or `all`),
// `library=specifier` ….
import { readFileSync } from 'node:fs'
import type { NativeLibrary } from '@shoal/ffi'
import type { Callable } from './recorders.js'

export interface BindSample {
  readonly importMilliseconds: number
  readonly bindMilliseconds: number
  readonly bound: number
  readonly residentBytes: number
  readonly libraries: readonly string[]
}

type Exports = Readonly<Record<string, unknown>>

const [functionsFile = '', count = '0', ...wanted] = process.argv.slice(2)
const functions: Record<string, Callable[]> =
  functionsFile === '' ? {} : (JSON.parse(readFileSync(functionsFile, 'utf8')) as Record<string, Callable[]>)
const entries = wanted.map((each) => each.split('=') as [library: string, specifier: string])

let before = performance.now()
const packages = new Map<string, Exports>()
for (const [library, specifier] of entries) packages.set(library, (await import(specifier)) as Exports)
const importMilliseconds = performance.now() - before

let [bound, bindMilliseconds] = [0, 0]
for (const [library, exports] of packages) {
  const all = functions[library] ?? []
  const list = count === 'all' ? all : all.slice(0, Number(count))
  if (list.length === 0) continue
  const clear = await startRecorder(exports[library] as NativeLibrary)
  before = performance.now()
  for (const callable of list) call(exports, callable, clear)
  bindMilliseconds += performance.now() - before
  bound += list.length
}
const maps = process.platform === 'linux' ? readFileSync('/proc/self/maps', 'utf8') : ''
const libraries = [
  ...new Set(maps.match(/\/\S*(?:libcuda|libcudart|libnccl|libnvshmem|libnvidia|librecorder)\S*/g) ?? []),
]
const residentBytes = process.memoryUsage.rss()
const sample: BindSample = { importMilliseconds, bindMilliseconds, bound, residentBytes, libraries }
console.log(JSON.stringify(sample))

/**
 * Makes the recorder answer the package's own calls while it resolves functions. Returns a function that clears its
 * log.
 */
async function startRecorder(library: NativeLibrary): Promise<() => void> {
  const { hostView } = await import('@shoal/ffi')
  const address = library.rawSymbol('shoal_proof_log')
  if (address === undefined) throw new Error(`${library.load().path} is not a recorder`)
  const { buffer } = hostView(address, 16)
  const words = new Uint32Array(buffer)
  words[3] = 1
  return () => {
    words[0] = 0
    words[1] = 0
  }
}

function call(exports: Exports, [name, ...kinds]: Callable, clear: () => void): void {
  const bind = exports[name] as (...values: unknown[]) => unknown
  bind(
    ...kinds.map((kind) =>
      typeof kind === 'number' ? new Uint8Array(kind) : kind === 'p' ? null : kind === 'b' ? false : 0,
    ),
  )
  clear()
}

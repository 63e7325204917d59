import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sysEntries } from './entries.js'

/** What is used of the specs. */
interface Spec {
  readonly library: string
  readonly functions: readonly {
    readonly name: string
    readonly symbol: string
    readonly parameters: readonly { readonly lowered: { readonly kind: string; readonly size?: number } }[]
  }[]
}

interface Proofs {
  emitRecorder(spec: Spec): string[]
  loaderFunctions(library: string): string[]
  compileLibrary(folder: string, name: string, units: readonly string[]): Promise<string>
}

/** A function and a letter for each of its arguments: a pointer, a number, a truth value; of a struct its size. */
export type Callable = readonly [name: string, ...kinds: (string | number)[]]

/** What the processes need that bind functions. */
export interface Recorders {
  /** Variables that name the recorders. */
  readonly environment: Readonly<Record<string, string>>
  /** A file with the functions of each library, as `Record<string, Callable[]>`. */
  readonly functionsFile: string
  readonly counts: Readonly<Record<string, number>>
}

/** Builds libraries that have every function of the specs and do nothing: there all of them can be called. */
export async function buildRecorders(specFolder: string | undefined): Promise<Recorders> {
  const proofs = await loadProofs()
  const folder = mkdtempSync(join(tmpdir(), 'shoal-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const specs = specFolder ?? fileURLToPath(new URL('../spec/', import.meta.resolve('@shoal/bindgen/dist/main.js')))
  const environment: Record<string, string> = {}
  const functions: Record<string, Callable[]> = {}
  for (const { library, environment: variable } of sysEntries) {
    const file = join(specs, `${library}.json`)
    if (!existsSync(file)) throw new Error(`there is no ${file}: name the folder of the specs with --spec`)
    const spec = JSON.parse(readFileSync(file, 'utf8')) as Spec
    environment[variable] = await proofs.compileLibrary(folder, `recorder-${library}`, proofs.emitRecorder(spec))
    // The package calls those itself when it resolves another one.
    const own = proofs.loaderFunctions(library)
    functions[library] = spec.functions
      .filter(({ symbol }) => !own.includes(symbol))
      .map(({ name, parameters }): Callable => [name, ...parameters.map(({ lowered }) => letterFor(lowered))])
  }
  const functionsFile = join(folder, 'functions.json')
  writeFileSync(functionsFile, JSON.stringify(functions))
  const counts = Object.fromEntries(Object.entries(functions).map(([name, list]) => [name, list.length]))
  return { environment, functionsFile, counts }
}

async function loadProofs(): Promise<Proofs> {
  const [recorder, compile] = ['recorder', 'compile'].map((name) => `@shoal/bindgen/dist/proof/${name}.js`)
  return { ...(await import(recorder as string)), ...(await import(compile as string)) } as Proofs
}

function letterFor({ kind, size }: { readonly kind: string; readonly size?: number }): string | number {
  switch (kind) {
    case 'struct':
      return size ?? 0
    case 'integer':
    case 'size':
    case 'enum':
    case 'float':
      return 'n'
    case 'bool':
      return 'b'
    default:
      return 'p'
  }
}

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder, writeTemporary } from '../compile.js'
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

/** A function and a letter for each of its arguments: `p` a pointer, `n` a number, `b` a boolean; of a struct its size. */
export type Callable = readonly [name: string, ...kinds: (string | number)[]]

/** Libraries to bind functions of. */
export interface Recorders {
  /** Variables that name the recorders. */
  readonly environment: Readonly<Record<string, string>>
  /** A file with the functions of each library, as `Record<string, Callable[]>`. */
  readonly functionsFile: string
  readonly counts: Readonly<Record<string, number>>
}

/** Builds libraries that have every function of the specs, all of which do nothing. */
export async function buildRecorders(specFolder: string | undefined): Promise<Recorders> {
  const proofs = await loadProofs()
  const specs = specFolder ?? fileURLToPath(new URL('../spec/', import.meta.resolve('@shoal/bindgen/dist/main.js')))
  const environment: Record<string, string> = {}
  const functions: Record<string, Callable[]> = {}
  for (const { library, environment: variable } of sysEntries) {
    const file = join(specs, `${library}.json`)
    if (!existsSync(file)) throw new Error(`there is no ${file}: name the folder of the specs with --spec`)
    const spec = JSON.parse(readFileSync(file, 'utf8')) as Spec
    environment[variable] = await proofs.compileLibrary(
      temporaryFolder(),
      `recorder-${library}`,
      proofs.emitRecorder(spec),
    )
    // The package itself calls those to find the others.
    const own = proofs.loaderFunctions(library)
    functions[library] = spec.functions
      .filter(({ symbol }) => !own.includes(symbol))
      .map(({ name, parameters }): Callable => [name, ...parameters.map(({ lowered }) => letterFor(lowered))])
  }
  const functionsFile = writeTemporary('functions.json', JSON.stringify(functions))
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

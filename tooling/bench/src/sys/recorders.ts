import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileLibrary } from '@shoal/bindgen/dist/proof/compile.js'
import { emitRecorder, loaderFunctions } from '@shoal/bindgen/dist/proof/recorder.js'
import type { LibrarySpecFile, Lowered } from '@shoal/bindgen/dist/spec/types.js'
import { temporaryFolder, writeTemporary } from '../compile.js'
import { sysEntries } from './entries.js'

/**
 * A function, and a letter for each of its arguments: `p` for a pointer, `n` for a number, `b` for a boolean. For a
 * struct, its size.
 */
export type Callable = readonly [name: string, ...kinds: (string | number)[]]

/** Libraries with functions to bind. */
export interface Recorders {
  /** Environment variables for the recorders' files. */
  readonly environment: Readonly<Record<string, string>>
  /** A file with the functions of each library, as `Record<string, Callable[]>`. */
  readonly functionsFile: string
  readonly counts: Readonly<Record<string, number>>
}

/** Builds libraries with every function of the specs. The functions do nothing. */
export async function buildRecorders(specFolder: string | undefined): Promise<Recorders> {
  const specs = specFolder ?? fileURLToPath(new URL('../spec/', import.meta.resolve('@shoal/bindgen/dist/main.js')))
  const environment: Record<string, string> = {}
  const functions: Record<string, Callable[]> = {}
  for (const { library, environment: variable } of sysEntries) {
    const file = join(specs, `${library}.json`)
    if (!existsSync(file)) throw new Error(`there is no ${file}: name the folder of the specs with --spec`)
    const spec = JSON.parse(readFileSync(file, 'utf8')) as LibrarySpecFile
    environment[variable] = await compileLibrary(temporaryFolder(), `recorder-${library}`, emitRecorder(spec))
    // The package itself calls these to find the others.
    const own = loaderFunctions(library)
    functions[library] = spec.functions
      .filter(({ symbol }) => !own.includes(symbol))
      .map(({ name, parameters }): Callable => [name, ...parameters.map(({ lowered }) => kindOf(lowered))])
  }
  const functionsFile = writeTemporary('functions.json', JSON.stringify(functions))
  const counts = Object.fromEntries(Object.entries(functions).map(([name, list]) => [name, list.length]))
  return { environment, functionsFile, counts }
}

function kindOf(lowered: Lowered): string | number {
  if (lowered.kind === 'struct') return lowered.size
  if (lowered.kind === 'bool') return 'b'
  return ['integer', 'size', 'enum', 'float'].includes(lowered.kind) ? 'n' : 'p'
}

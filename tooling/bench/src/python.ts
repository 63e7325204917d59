import { fileURLToPath } from 'node:url'
import { callsPerBurst } from '@shoal/cli/bench'
import { SubjectProcess } from './subjectProcess.js'
import { type Subject, subjectIn } from './turns.js'

/** A Python library: the cases that it supports, or the reason why it is missing. */
type PythonLibrary =
  | { readonly version: string; readonly cases: readonly string[]; readonly refused: Readonly<Record<string, string>> }
  | { readonly missing: string }
export type PythonLibraries = Readonly<Record<string, PythonLibrary>>

/** The Python program, and each of its libraries as a subject. */
export interface Python {
  readonly libraries: PythonLibraries
  readonly subjects: readonly Subject[]
  close(): void
}

/** Starts python/bindings.py with the kernels in `ptxFile`. On failure, `libraries` contains the reason. */
export async function startPython(ptxFile: string): Promise<Python> {
  const script = fileURLToPath(new URL('../python/bindings.py', import.meta.url))
  const command = process.env['PYTHON'] || 'python3'
  try {
    const [python, report] = await SubjectProcess.start('bindings.py', command, [script, ptxFile])
    const libraries = JSON.parse(report) as PythonLibraries
    const subjects = Object.entries(libraries).flatMap(([name, library]): Subject[] => {
      const requestFor = (test: string, bursts: number): string => `${name} ${test} ${bursts} ${callsPerBurst}`
      return 'cases' in library ? [subjectIn(python, name, library.cases, requestFor)] : []
    })
    return { libraries, subjects, close: () => python.close() }
  } catch (error) {
    return { libraries: { Python: { missing: (error as Error).message } }, subjects: [], close: () => undefined }
  }
}

/** Prints the missing Python libraries, and the cases that the others do not support. */
export function printMissing(libraries: PythonLibraries, cases: readonly string[]): void {
  for (const [name, library] of Object.entries(libraries)) {
    if ('missing' in library) {
      console.log(`without ${name}: ${library.missing}`)
      continue
    }
    for (const [test, reason] of Object.entries(library.refused)) {
      if (cases.includes(test)) console.log(`without ${test} of ${name} ${library.version}: ${reason}`)
    }
  }
}

// Compiles C++ libraries and programs.
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { compiledOnce, stateOf } from './compiled.js'
import { inParallel, runProgram } from './processes.js'

/** No C++ code calls these functions with its own prototypes, so warnings about them are irrelevant. */
const always = ['-std=c++17', '-O0', '-w']

const compiler = process.env['CXX'] || 'g++'

/** @throws Error with the compiler's output */
async function compile(parameters: readonly string[]): Promise<void> {
  const { ok, problem } = await runProgram(compiler, [...always, ...parameters], { seconds: 300 })
  if (!ok) throw new Error(`the C++ compiler: ${problem}`)
}

let version: string | undefined

/** The compiler's version, or an empty text if there is no compiler. */
function compilerVersion(): string {
  version ??= spawnSync(compiler, ['--version'], { encoding: 'utf8' }).stdout ?? ''
  return version
}

/** Compiles a text. The source file stays next to the result. */
async function compileText(
  source: string,
  output: string,
  parameters: readonly string[],
  includes: readonly string[],
): Promise<void> {
  const file = `${output}.cpp`
  writeFileSync(file, source)
  const told = [...includes.map((folder) => `-I${folder}`), ...parameters]
  const ingredients = [compiler, compilerVersion(), ...always, ...told, ...includes.map(stateOf), source]
  await compiledOnce(ingredients, output, () => compile([...told, '-o', output, file, '-ldl']))
}

/** Compiles units in parallel and links them to a shared library. Returns its file. */
export async function compileLibrary(
  folder: string,
  name: string,
  units: readonly string[],
  includes: readonly string[] = [],
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const tasks = units.map((source, index) => async () => {
    const object = join(folder, `${name}-${index}.o`)
    await compileText(source, object, ['-fPIC', '-fno-exceptions', '-c'], includes)
    return object
  })
  const objects = await inParallel(availableParallelism(), tasks)
  const library = join(folder, `lib${name}.so`)
  await compile(['-shared', '-o', library, ...objects, '-ldl'])
  return library
}

/** Compiles a program. Returns its file. */
export async function compileProgram(
  folder: string,
  name: string,
  source: string,
  includes: readonly string[],
  flags: readonly string[] = [],
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const program = join(folder, name)
  await compileText(source, program, flags, includes)
  return program
}

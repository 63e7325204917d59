// Libraries and programs in C++.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { inParallel, runProgram } from './processes.js'

/** Nothing here is called from C++ with prototypes of its own, so warnings about them say nothing. */
const always = ['-std=c++17', '-O0', '-w']

/** @throws Error with what the compiler said */
async function compile(parameters: readonly string[]): Promise<void> {
  const { ok, problem } = await runProgram(process.env['CXX'] || 'g++', [...always, ...parameters], { seconds: 300 })
  if (!ok) throw new Error(`the C++ compiler: ${problem}`)
}

const searching = (includes: readonly string[]): string[] => includes.map((folder) => `-I${folder}`)

/** Compiles units side by side and links them to a shared library; returns its file. */
export async function compileLibrary(
  folder: string,
  name: string,
  units: readonly string[],
  includes: readonly string[] = [],
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const tasks = units.map((source, index) => async () => {
    const [file, object] = ['cpp', 'o'].map((ending) => join(folder, `${name}-${index}.${ending}`)) as [string, string]
    writeFileSync(file, source)
    await compile(['-fPIC', '-fno-exceptions', ...searching(includes), '-c', file, '-o', object])
    return object
  })
  const objects = await inParallel(availableParallelism(), tasks)
  const library = join(folder, `lib${name}.so`)
  await compile(['-shared', '-o', library, ...objects, '-ldl'])
  return library
}

/** Compiles a program, or finds it as it was compiled before; returns its file. */
export async function compileProgram(
  folder: string,
  name: string,
  source: string,
  includes: readonly string[],
  flags: readonly string[] = [],
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const program = join(folder, name)
  const told = [...searching(includes), ...flags]
  const text = `// ${told.join(' ')}\n${source}`
  if (existsSync(program) && readFileSync(`${program}.cpp`, 'utf8') === text) return program
  rmSync(program, { force: true })
  writeFileSync(`${program}.cpp`, text)
  await compile([...told, '-o', program, `${program}.cpp`, '-ldl'])
  return program
}

import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

const compiler = process.env['CXX'] ?? 'g++'

function run(command: string, parameters: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, parameters, { stdio: ['ignore', 'ignore', 'pipe'] })
    const errors: Buffer[] = []
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
    child.on('error', reject)
    child.on('close', (status) => {
      if (status === 0) resolve()
      else reject(new Error(`${command} ${parameters.join(' ')}\n${Buffer.concat(errors).toString().slice(0, 4000)}`))
    })
  })
}

/** Compiles units side by side and links them to a shared library; returns its file. */
export async function compileLibrary(folder: string, name: string, units: readonly string[]): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const objects = units.map((_, index) => join(folder, `${name}-${index}.o`))
  const waiting = units.map((source, index) => ({ source, index }))
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const file = join(folder, `${name}-${next.index}.cpp`)
      writeFileSync(file, next.source)
      // Nothing here is called from C++ with these prototypes, so warnings about them say nothing.
      await run(compiler, [
        '-std=c++17',
        '-O0',
        '-w',
        '-fPIC',
        '-fno-exceptions',
        '-c',
        file,
        '-o',
        objects[next.index] as string,
      ])
    }
  }
  await Promise.all(Array.from({ length: Math.min(units.length, availableParallelism()) }, work))
  const library = join(folder, `lib${name}.so`)
  await run(compiler, ['-shared', '-o', library, ...objects])
  return library
}

/** Compiles a program; returns its file. */
export async function compileProgram(
  folder: string,
  name: string,
  source: string,
  includes: readonly string[],
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${name}.cpp`)
  const program = join(folder, name)
  writeFileSync(file, source)
  await run(compiler, ['-std=c++17', '-O0', '-w', ...includes.map((each) => `-I${each}`), '-o', program, file])
  return program
}

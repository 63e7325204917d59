/** Builds the C++ program with the CUDA header and the same library file that the packages loaded, and runs it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { driver } from '@shoal/cuda-sys/driver'
import type { Value } from './answer.js'
import type { ReferenceCase } from './cases.js'

const sources = fileURLToPath(new URL('../../native/reference', import.meta.url))
/** Kinds of constants that the list names, with the prefix of their C names. */
const prefixes = { function: 'CU_FUNC_ATTRIBUTE_', device: 'CU_DEVICE_ATTRIBUTE_', limit: 'CU_LIMIT_' } as const
const secondsOfRun = 300

/** Returns the folder of cuda.h, or undefined without a toolkit. */
export function includeFolder(): string | undefined {
  const { CUDA_HOME, CUDA_PATH } = process.env
  const homes = [CUDA_HOME, CUDA_PATH, '/usr/local/cuda', '/usr']
  return homes
    .filter(Boolean)
    .map((home) => join(home as string, 'include'))
    .find((folder) => existsSync(join(folder, 'cuda.h')))
}

/** Returns the header's constants of a kind, without their prefix. */
export function headerNames(include: string, kind: keyof typeof prefixes): string[] {
  const text = readFileSync(join(include, 'cuda.h'), 'utf8')
  const found = text.matchAll(new RegExp(`^\\s*${prefixes[kind]}(\\w+)\\s*=`, 'gm'))
  return [...found].map(([, name]) => name as string).filter((name) => name !== 'MAX')
}

/** Builds the program in a folder, unless it exists there. @throws Error with the compiler's messages */
export function buildProgram(folder: string, include: string): string {
  const program = join(folder, 'reference')
  if (existsSync(program)) return program
  const kinds = Object.keys(prefixes) as (keyof typeof prefixes)[]
  const names = kinds.flatMap((kind) =>
    headerNames(include, kind).map((name) => `{"${kind}", "${name}", ${prefixes[kind]}${name}},\n`),
  )
  writeFileSync(join(folder, 'names.inc'), names.join(''))
  const { path } = driver.load()
  const files = readdirSync(sources)
    .filter((name) => name.endsWith('.cc'))
    .map((name) => join(sources, name))
  const options = ['-std=c++17', '-O0', `-I${include}`, `-I${folder}`, `-Wl,-rpath,${dirname(path)}`, '-o', program]
  execFileSync(process.env['CXX'] || 'g++', [...options, ...files, path], { stdio: ['ignore', 'inherit', 'inherit'] })
  return program
}

/** Returns the program's answer to each case. */
export function askProgram(program: string, list: readonly ReferenceCase[], folder: string): Value[] {
  const file = join(folder, 'list.json')
  writeFileSync(file, JSON.stringify(list))
  const { stdout, stderr, status, signal } = spawnSync(program, [file], {
    encoding: 'utf8',
    timeout: secondsOfRun * 1000,
    maxBuffer: 2 ** 28,
  })
  const answers = stdout.split('\n').filter((line) => line.startsWith('{') || line.startsWith('['))
  if (status !== 0 || answers.length !== list.length) {
    const after = list[answers.length - 1]?.name ?? 'the beginning'
    throw new Error(`the program in C++ ended with ${signal ?? status} after ${after}: ${stderr.slice(-2000)}`)
  }
  return answers.map((line) => JSON.parse(line) as Value)
}

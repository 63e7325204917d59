import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const nativeFolder = fileURLToPath(new URL('../native', import.meta.url))
export const buildFolder = fileURLToPath(new URL('../build', import.meta.url))

/** Builds the test programs, and the libraries if they are out of date. Only one test file at a time builds. */
export async function makeTests(): Promise<void> {
  let lock = await takeLock()
  while (lock === undefined) {
    await sleep(100)
    lock = await takeLock()
  }
  try {
    execFileSync('make', ['-s', '-j', '2', 'tests'], { cwd: nativeFolder, stdio: ['ignore', 'inherit', 'inherit'] })
  } finally {
    lock.close()
  }
}

/**
 * Takes the lock; undefined if another process has it. The socket's name is free again when its process ends, even
 * after a crash.
 */
function takeLock(): Promise<Server | undefined> {
  const name = `\0${createHash('sha256').update(buildFolder).digest('hex')}`
  return new Promise((resolve, reject) => {
    const server = createServer().listen(name, () => resolve(server))
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    )
  })
}

/** Compiles a source file and returns the program's path. */
export function compile(source: string, program: string, options: readonly string[] = []): string {
  mkdirSync(buildFolder, { recursive: true })
  const out = join(buildFolder, program)
  const includes = ['-I', join(nativeFolder, 'include')]
  const all = ['-std=c++17', '-O0', '-pthread', ...includes, ...options, source, '-o', out]
  execFileSync('g++', all, { stdio: ['ignore', 'inherit', 'inherit'] })
  return out
}

/** Returns all tests in a program's source, in order. */
export function testNames(program: string): string[] {
  const source = readFileSync(join(nativeFolder, 'test', `${program}.cc`), 'utf8')
  return [...source.matchAll(/^TEST\((\w+)\)/gm)].map((match) => match[1] as string)
}

export const programs = readdirSync(join(nativeFolder, 'test'))
  .filter((name) => name.endsWith('_test.cc'))
  .map((name) => name.slice(0, -3))

export interface Report {
  status: number | null
  signal: NodeJS.Signals | null
  /** Each test's name and its output line. */
  lines: Map<string, string>
  errors: string
}

/** Runs a test program and reads its report. */
export function runProgram(program: string): Report {
  const environment = { ...process.env }
  for (const name of Object.keys(environment)) if (name.startsWith('SHOAL_')) delete environment[name]
  const path = join(buildFolder, 'test', program)
  const result = spawnSync(path, [], { encoding: 'utf8', env: environment, timeout: 600_000 })
  const lines = new Map<string, string>()
  for (const line of result.stdout.split('\n')) {
    const match = /^(ok|FAILED|skipped) (\w+)/.exec(line)
    if (match) lines.set(match[2] as string, line)
  }
  return { status: result.status, signal: result.signal, lines, errors: result.stderr }
}

/** Parses `name = value` lines to a map. */
export function readFacts(text: string): Map<string, string> {
  const facts = new Map<string, string>()
  for (const line of text.split('\n')) {
    const at = line.lastIndexOf(' = ')
    if (at > 0) facts.set(line.slice(0, at), line.slice(at + 3).trim())
  }
  return facts
}

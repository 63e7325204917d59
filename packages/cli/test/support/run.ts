import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect } from 'vitest'

/** Path of the program. */
export const shoal = fileURLToPath(new URL('../../bin/shoal.js', import.meta.url))
/** A script whose first argument selects its ranks' actions. */
export const ranks = fileURLToPath(new URL('../fixtures/ranks.mjs', import.meta.url))
/** Processes of a test, which are killed after it. */
export const children: ChildProcess[] = []
/** Folder of the current test. */
export let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'shoal-run-'))
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** A started `shoal run`. */
export interface Run {
  readonly child: ChildProcess
  readonly end: Promise<{
    readonly code: number | null
    readonly signal: NodeJS.Signals | null
    readonly output: string
    readonly errors: string
  }>
  output(): string
  errors(): string
  /** Resolves when the output contains the words `times` times. */
  until(words: string | RegExp, times?: number): Promise<void>
}

export function start(commandLine: readonly string[], environment: NodeJS.ProcessEnv = {}, input?: string): Run {
  const env: NodeJS.ProcessEnv = { ...process.env, SHOAL_DEVICE: '', CUDA_VISIBLE_DEVICES: undefined, ...environment }
  const child = spawn(process.execPath, [shoal, 'run', ...commandLine], {
    env,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  children.push(child)
  child.stdin?.end(input)
  let output = ''
  let errors = ''
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const end: Run['end'] = new Promise((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, output, errors }))
  })
  return {
    child,
    end,
    output: () => output,
    errors: () => errors,
    async until(words, times = 1) {
      await expect.poll(() => output.split(words).length - 1, { timeout: 300_000 }).toBeGreaterThanOrEqual(times)
    },
  }
}

export const run = (commandLine: readonly string[], environment?: NodeJS.ProcessEnv, input?: string) =>
  start(commandLine, environment, input).end

export const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

export const linesOf = (text: string): string[] => text.split('\n').slice(0, -1)

export function pidsIn(output: string): number[] {
  return [...output.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]))
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export async function expectEnded(pids: readonly number[]): Promise<void> {
  await expect.poll(() => pids.filter(isAlive), { timeout: 300_000 }).toEqual([])
}

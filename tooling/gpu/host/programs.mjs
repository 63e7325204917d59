// Programs in C that are built where they run, and answer in lines of JSON.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What these programs and those of the benchmark have in common. */
const sharedHeaders = fileURLToPath(new URL('node_modules/@shoal/bench/native', import.meta.url))

/** Builds a program of this folder, calls `use` with its file, and removes it. */
export async function withProgram(source, use) {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-program-'))
  try {
    const program = join(folder, 'program')
    const file = fileURLToPath(new URL(source, import.meta.url))
    const words = ['-O2', '-I', sharedHeaders, '-o', program, file, '-ldl', '-lpthread']
    execFileSync('nvcc', words, { stdio: ['ignore', 'inherit', 'inherit'] })
    return await use(program)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The answers in an output: libraries may print between them. */
export function answersIn(text) {
  const lines = text.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line))
}

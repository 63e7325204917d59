// Builds C programs on the host and reads their answers, which are lines of JSON.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Headers that these programs share with the benchmark's. */
const sharedHeaders = fileURLToPath(new URL('node_modules/@shoal/bench/native', import.meta.url))

/** Builds a program of this folder, calls `use` with its path, and deletes it. */
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

/** Returns the answers in an output. Libraries may print other lines between them. */
export function answersIn(text) {
  const lines = text.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line))
}

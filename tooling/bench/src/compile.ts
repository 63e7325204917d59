import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const nativeFolder = fileURLToPath(new URL('../native/', import.meta.url))

/** Where programs are built; gone when the process ends. */
let folder: string | undefined

/** Builds `native/<source>` with the C compiler (`CC`, else gcc) and returns the file it made. */
export function compile(source: string, output: string, options: readonly string[]): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'shoal-bench-'))
    process.once('exit', () => rmSync(made, { recursive: true, force: true }))
    folder = made
  }
  const compiler = process.env['CC'] || 'gcc'
  const file = join(folder, output)
  try {
    execFileSync(compiler, ['-O2', '-Wall', '-o', file, join(nativeFolder, source), ...options], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (error) {
    const words = String((error as { stderr?: Buffer }).stderr ?? '').trim()
    throw new Error(
      `cannot build ${source}, which the comparison with C needs (${compiler}): ${words || String(error)}`,
    )
  }
  return file
}

/** The folder with cuda.h. */
export function cudaIncludeFolder(): string {
  const folders = [process.env['CUDA_HOME'], process.env['CUDA_PATH'], '/usr/local/cuda', '/usr/local/cuda-13.0']
  for (const home of folders) {
    if (home !== undefined && home !== '' && existsSync(join(home, 'include', 'cuda.h'))) return join(home, 'include')
  }
  throw new Error('no cuda.h: name the CUDA toolkit with CUDA_HOME=/path/to/cuda')
}

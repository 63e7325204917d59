import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { libraryPath } from './devices.js'

const nativeFolder = fileURLToPath(new URL('../native/', import.meta.url))

let folder: string | undefined

/** A folder that is removed when this process ends. */
export function temporaryFolder(): string {
  if (folder !== undefined) return folder
  const made = mkdtempSync(join(tmpdir(), 'shoal-bench-'))
  process.once('exit', () => rmSync(made, { recursive: true, force: true }))
  folder = made
  return made
}

/** Writes a file into the temporary folder and returns its path. */
export function writeTemporary(name: string, text: string): string {
  const file = join(temporaryFolder(), name)
  writeFileSync(file, text)
  return file
}

/** Builds `native/<source>` once with the C compiler (`CC`, otherwise gcc). Returns the built file. */
export function compile(source: string, options: readonly string[] = []): string {
  const compiler = process.env['CC'] || 'gcc'
  const file = join(temporaryFolder(), source.replace(/\.c$/, ''))
  if (existsSync(file)) return file
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

/** Like {@link compile}, with cuda.h and the driver that Shoal has loaded. */
export function compileWithCuda(source: string, options: readonly string[] = []): string {
  const libcuda = libraryPath('cuda')
  const include = `-I${cudaIncludeFolder()}`
  return compile(source, [include, libcuda, `-Wl,-rpath,${dirname(libcuda)}`, '-ldl', ...options])
}

/** The folder that contains cuda.h. */
function cudaIncludeFolder(): string {
  const folders = [process.env['CUDA_HOME'], process.env['CUDA_PATH'], '/usr/local/cuda', '/usr/local/cuda-13.0']
  for (const home of folders) {
    if (home !== undefined && home !== '' && existsSync(join(home, 'include', 'cuda.h'))) return join(home, 'include')
  }
  throw new Error('no cuda.h: name the CUDA toolkit with CUDA_HOME=/path/to/cuda')
}

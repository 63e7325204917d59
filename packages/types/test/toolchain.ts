import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Returns the folder with the headers of an installed CUDA toolkit, or why there is none. */
export function cudaInclude(): { readonly folder: string } | { readonly reason: string } {
  const roots = [process.env['CUDA_HOME'], process.env['CUDA_PATH'], '/usr/local/cuda']
  if (existsSync('/usr/local')) {
    for (const name of readdirSync('/usr/local').sort().reverse()) {
      if (/^cuda-\d/.test(name)) roots.push(join('/usr/local', name))
    }
  }
  for (const root of roots) {
    if (root && existsSync(join(root, 'include', 'cuda.h'))) return { folder: join(root, 'include') }
  }
  return { reason: 'no CUDA headers: set CUDA_HOME to a toolkit' }
}

/** Compiles a C++ program and runs it with the given input. Returns its standard output. */
export function runCxx(source: string, options: { flags?: readonly string[]; input?: Uint8Array } = {}): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-types-'))
  try {
    const file = join(folder, 'program.cpp')
    const program = join(folder, 'program')
    writeFileSync(file, source)
    execFileSync('g++', ['-std=c++17', '-O1', '-o', program, file, ...(options.flags ?? [])], { stdio: 'pipe' })
    return execFileSync(program, { input: options.input ?? new Uint8Array(), maxBuffer: 1 << 28 })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

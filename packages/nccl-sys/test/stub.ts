import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packageFolder = fileURLToPath(new URL('../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'shoal-nccl-sys-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

/** Compiles C source to a shared library that stands in for libnccl; returns its file. */
export function compileStub(source: string, name = 'nccl'): string {
  const sourceFile = join(folder, `${name}.c`)
  const library = join(folder, `lib${name}-stub.so`)
  writeFileSync(
    sourceFile,
    `#define _GNU_SOURCE\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n${source}`,
  )
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-w', '-o', library, sourceFile], { stdio: 'pipe' })
  return library
}

/** Runs a module in a Node process of its own and returns the lines it prints. */
export function runModule(source: string, environment: Record<string, string> = {}): string[] {
  const { SHOAL_DEVICE: _, ...inherited } = process.env
  const result = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    cwd: packageFolder,
    encoding: 'utf8',
    env: { ...inherited, ...environment },
  })
  if (result.status !== 0) throw new Error(`exit ${result.status ?? result.signal}: ${result.stderr}`)
  return result.stdout.split('\n').filter((line) => line !== '')
}

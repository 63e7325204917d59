import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratchFolder } from '../../../../tooling/config/src/scratchFolder.js'

const folder = scratchFolder()

/** Compiles C source to a shared library that replaces one of CUDA's. Returns its file. */
export function compileStub(name: string, source: string, defines: Record<string, string | number> = {}): string {
  const sourceFile = join(folder, `${name}.c`)
  const library = join(folder, `${name}.so`)
  writeFileSync(
    sourceFile,
    `#define _GNU_SOURCE\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n${source}`,
  )
  const flags = Object.entries(defines).map(([key, value]) => `-D${key}=${value}`)
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-w', ...flags, '-o', library, sourceFile], { stdio: 'pipe' })
  return library
}

/**
 * Returns a function that runs a module in a separate Node process and returns its output lines. The module imports
 * packages like one in `packageFolder`.
 */
export function moduleRunner(packageFolder: URL): (source: string, environment?: Record<string, string>) => string[] {
  return (source, environment = {}) => {
    const { SHOAL_DEVICE: _, SHOAL_STREAM_MODE: __, ...inherited } = process.env
    const result = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
      cwd: packageFolder,
      timeout: 300_000,
      encoding: 'utf8',
      env: { ...inherited, ...environment },
    })
    if (result.status !== 0) throw new Error(`exit ${result.status ?? result.signal}: ${result.stderr}`)
    return result.stdout.split('\n').filter((line) => line !== '')
  }
}

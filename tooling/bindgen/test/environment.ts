import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clangVersion } from '../src/parse/clang.js'
import { driverSource } from '../src/parse/driver.js'
import { findHeaders } from '../src/parse/headers.js'
import { standInHeaders } from '../src/parse/include.js'
import { runtimeSource } from '../src/parse/runtime.js'
import type { LibrarySpecFile } from '../src/spec/types.js'

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const headers = findHeaders({})
export const libraryNames = ['driver', 'runtime', 'nccl'] as const
export type LibraryName = (typeof libraryNames)[number]

export const generatedFolders: Record<LibraryName, string> = {
  driver: join(root, 'packages/cuda-sys/src/driver/generated'),
  runtime: join(root, 'packages/cuda-sys/src/runtime/generated'),
  nccl: join(root, 'packages/nccl-sys/src/generated'),
}

export function readSpec(name: LibraryName): LibrarySpecFile {
  return JSON.parse(readFileSync(join(root, `tooling/bindgen/spec/${name}.json`), 'utf8')) as LibrarySpecFile
}

/** Why a test that needs the headers of a library cannot run, or undefined. */
export function noHeaders(name: LibraryName): string | undefined {
  if (headers.cuda === undefined) return 'no cuda.h: set CUDA_HOME to a toolkit'
  if (name === 'nccl' && headers.nccl === undefined) return 'no nccl.h: set NCCL_INCLUDE to its folder'
  return undefined
}

/** Why headers of the committed spec's version are not at hand, or undefined. */
export function noMatchingHeaders(name: LibraryName): string | undefined {
  const missing = noHeaders(name)
  if (missing !== undefined) return missing
  const spec = readSpec(name)
  const [file, macro] = {
    driver: ['cuda.h', 'CUDA_VERSION'],
    runtime: ['cuda_runtime_api.h', 'CUDART_VERSION'],
    nccl: ['nccl.h', 'NCCL_VERSION_CODE'],
  }[name] as [string, string]
  const found = new RegExp(`#define\\s+${macro}\\s+(\\d+)`).exec(headerText(name, file))?.[1]
  if (Number(found) === spec.headerVersion) return undefined
  return `${file} is of version ${found}, the spec of ${spec.headerVersion}`
}

export function headerText(name: LibraryName, file: string): string {
  return readFileSync(join((name === 'nccl' ? headers.nccl : headers.cuda) as string, file), 'utf8')
}

export function noClang(): string | undefined {
  return clangVersion() === undefined ? 'no clang' : undefined
}

/** The includes of a library for a C++ program. */
export const prelude: Record<LibraryName, string> = {
  driver: driverSource,
  runtime: runtimeSource,
  nccl: '#define NCCL_OS_LINUX\n#include <nccl.h>\n',
}

/** The driver's includes for a program that sees the ABIs of all versions, each under its symbol. */
export const everyAbiPrelude = `#define __CUDA_API_VERSION_INTERNAL\n${driverSource}`

/** Compiles a C++ program against the headers, runs it and returns what it prints. */
export function runCxx(source: string, flags: readonly string[] = []): string {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-bindgen-'))
  try {
    const file = join(folder, 'program.cpp')
    const program = join(folder, 'program')
    writeFileSync(file, source)
    const includes = [standInHeaders, headers.nccl, headers.cuda]
      .filter((entry) => entry !== undefined)
      .map((entry) => `-I${entry}`)
    execFileSync('g++', ['-std=c++17', '-O0', '-w', ...includes, ...flags, '-o', program, file], { stdio: 'pipe' })
    return execFileSync(program, { encoding: 'utf8', maxBuffer: 1 << 28 })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

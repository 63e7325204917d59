#!/usr/bin/env node
/** `node dist/build.js`: compiles the PTX of all sources again with nvcc. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const sourceFolder = fileURLToPath(new URL('../cuda/', import.meta.url))
export const ptxFolder = fileURLToPath(new URL('../ptx/', import.meta.url))
/** The compiler version of the committed PTX. Other versions write other PTX. */
export const compilerVersion = 'V13.0.88'

export const sourceNames = (): string[] =>
  readdirSync(sourceFolder)
    .filter((name) => name.endsWith('.cu'))
    .map((name) => name.slice(0, -3))

/** Returns the version of the installed nvcc, or undefined without nvcc. */
export function installedCompiler(): string | undefined {
  const { status, stdout } = spawnSync('nvcc', ['--version'], { encoding: 'utf8' })
  return status === 0 ? /V\d+\.\d+\.\d+/.exec(stdout)?.[0] : undefined
}

/**
 * Compiles one source to PTX. Products and sums are fused only if the source asks for it, so references can predict
 * every bit.
 */
export function compile(name: string): string {
  const source = join(sourceFolder, `${name}.cu`)
  const architecture = /arch: (compute_\d+)/.exec(readFileSync(source, 'utf8'))?.[1] ?? 'compute_80'
  const folder = mkdtempSync(join(tmpdir(), 'shoal-kernels-'))
  try {
    const out = join(folder, 'out.ptx')
    const options = ['-ptx', '-std=c++17', `-arch=${architecture}`, '-fmad=false', '-o', out, `${name}.cu`]
    const { status, stderr } = spawnSync('nvcc', options, { cwd: sourceFolder, encoding: 'utf8' })
    if (status !== 0) throw new Error(`nvcc: ${name}.cu\n${stderr}`)
    return withoutPlace(readFileSync(out, 'utf8'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Removes a number that nvcc derives from the folder. Names that only one file can see contain it. */
function withoutPlace(ptx: string): string {
  const place = /_INTERNAL_([0-9a-f]{8})_/.exec(ptx)?.[1]
  return place === undefined ? ptx : ptx.replaceAll(place, '0'.repeat(place.length))
}

/** Digests of the sources at the time their PTX was made, by name. */
export const digestsFile = join(ptxFolder, 'sources.json')
export function digests(): Record<string, string> {
  const files = readdirSync(sourceFolder).sort()
  return Object.fromEntries(
    files.map((file) => [
      file,
      createHash('sha256')
        .update(readFileSync(join(sourceFolder, file)))
        .digest('hex'),
    ]),
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const name of sourceNames()) writeFileSync(join(ptxFolder, `${name}.ptx`), compile(name))
  writeFileSync(digestsFile, `${JSON.stringify(digests(), null, 2)}\n`)
}

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median, type Series, series } from '../statistics.js'
import type { BindSample } from './bindChild.js'

const child = fileURLToPath(new URL('bindChild.js', import.meta.url))

/** What a fresh process does: imports packages, and binds some of their functions. */
export interface Program {
  /** How many functions of each package. */
  readonly count: '0' | '10' | 'all'
  /** Library and specifier; a package without a library has its own name twice. */
  readonly imports: readonly (readonly [library: string, specifier: string])[]
  /** Where the functions are listed, where any are bound. */
  readonly functionsFile?: string
  readonly environment?: Readonly<Record<string, string>>
}

/** What that costs. */
export interface Cost {
  readonly bound: number
  readonly importMilliseconds: Series
  readonly bindMilliseconds: Series
  readonly bytesOverBareNode: Series
  /** CUDA libraries that are mapped afterwards. */
  readonly libraries: readonly string[]
}

/** Runs each program in every round, in turn with a bare Node. */
export function measureImports(programs: readonly Program[], rounds: number): { bareBytes: Series; costs: Cost[] } {
  const all = programs.map((program) => ({ program, samples: [] as BindSample[] }))
  for (const { program } of all) run(program) // brings the files into the page cache
  const bare: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    // With the same functions file, which then is not counted.
    bare.push(run({ ...programs[0], count: '0', imports: [] }).residentBytes)
    for (const { program, samples } of all) samples.push(run(program))
  }
  const bareBytes = median(bare)
  const costs = all.map(({ samples }) => ({
    bound: samples[0]?.bound ?? 0,
    importMilliseconds: series(samples.map((one) => one.importMilliseconds)),
    bindMilliseconds: series(samples.map((one) => one.bindMilliseconds)),
    bytesOverBareNode: series(samples.map((one) => one.residentBytes - bareBytes)),
    libraries: [...new Set(samples.flatMap((one) => one.libraries))],
  }))
  return { bareBytes: series(bare), costs }
}

function run({ count, imports, functionsFile = '', environment }: Program): BindSample {
  const { SHOAL_DEVICE: _, ...inherited } = process.env
  const words = imports.map(([library, specifier]) => `${library}=${specifier}`)
  const output = execFileSync(process.execPath, [child, functionsFile, count, ...words], {
    encoding: 'utf8',
    env: { ...inherited, ...environment },
  })
  return JSON.parse(output) as BindSample
}

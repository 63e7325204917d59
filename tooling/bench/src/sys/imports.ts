import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median, type Series, series } from '../statistics.js'
import { takeRounds } from '../turns.js'
import type { BindSample } from './bindChild.js'

const child = fileURLToPath(new URL('bindChild.js', import.meta.url))

/** The work of a fresh process: it imports packages and binds some of their functions. */
export interface Program {
  /** The number of functions to bind per package. */
  readonly count: '0' | '10' | 'all'
  /** Library and specifier. A package without a library has its own name twice. */
  readonly imports: readonly (readonly [library: string, specifier: string])[]
  /** The file that lists the functions, if any are bound. */
  readonly functionsFile?: string
  readonly environment?: Readonly<Record<string, string>>
}

/** The costs of this work. */
export interface Cost {
  readonly bound: number
  readonly importMilliseconds: Series
  readonly bindMilliseconds: Series
  readonly bytesOverBareNode: Series
  /** CUDA libraries that are mapped afterwards. */
  readonly libraries: readonly string[]
}

/** Runs each program in every round, alternating with a bare Node. */
export async function measureImports(
  programs: readonly Program[],
  rounds: number,
): Promise<{ bareBytes: Series; costs: Cost[] }> {
  // Uses the same functions file, so that its cost cancels out.
  const bareNode: Program = { ...programs[0], count: '0', imports: [] }
  const runs = [bareNode, ...programs].map((program, index) => [`program ${index}`, () => run(program)] as const)
  const samples = await takeRounds(Object.fromEntries(runs), rounds)
  const [bare = [], ...samplesOfAll] = Object.values(samples)
  const bareBytes = median(bare.map((one) => one.residentBytes))
  const costs = samplesOfAll.map((samples) => ({
    bound: samples[0]?.bound ?? 0,
    importMilliseconds: series(samples.map((one) => one.importMilliseconds)),
    bindMilliseconds: series(samples.map((one) => one.bindMilliseconds)),
    bytesOverBareNode: series(samples.map((one) => one.residentBytes - bareBytes)),
    libraries: [...new Set(samples.flatMap((one) => one.libraries))],
  }))
  return { bareBytes: series(bare.map((one) => one.residentBytes)), costs }
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

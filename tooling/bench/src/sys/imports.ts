import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median, type Series, series } from '../statistics.js'
import { takeRounds } from '../turns.js'
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
export async function measureImports(
  programs: readonly Program[],
  rounds: number,
): Promise<{ bareBytes: Series; costs: Cost[] }> {
  // With the same functions file, which then is not counted.
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

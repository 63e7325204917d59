import { number, table } from '@shoal/cli/bench'
import { atMost, type Bar } from '../bars.js'
import type { Outcome, RunOptions } from '../options.js'
import type { Series } from '../statistics.js'
import { type SysEntry, sysEntries } from './entries.js'
import { type Cost, measureImports, type Program } from './imports.js'
import { measurePackedSizes } from './packedSize.js'
import { buildRecorders, type Recorders } from './recorders.js'
import { measureTypeChecks, type TypeCheckFigures } from './typeCheck.js'

const mebibyte = 2 ** 20
const boundCounts = ['0', '10', 'all'] as const
/** A typical function of each library. */
const typical = { driver: 'cuMemCreate', runtime: 'cudaMalloc', nccl: 'ncclAllReduce', nvshmem: 'nvshmem_putmem' }

/** The costs of the raw packages: imports, bindings, memory, type checks, downloads. */
export async function benchSys(options: RunOptions): Promise<Outcome> {
  console.log('building libraries that have every function …\n')
  const recorders = await buildRecorders(options.specFolder)
  const imports = await measurePackages(recorders, options.rounds)
  const checks = await measureTypeChecks(Math.min(options.rounds, 3), typical)
  const sizes = measurePackedSizes()
  printImports(imports, recorders, options.rounds)
  printTypeChecks(checks)
  printSizes(sizes)
  const bars = [
    ...imports.entries.map(({ specifier, bound }) =>
      atMost(`import '${specifier}'`, bound['0'].importMilliseconds.median, 30, ' ms'),
    ),
    atMost(
      'all functions of all four bound, resident memory over bare Node',
      imports.everything.bytesOverBareNode.median / 1e6,
      60,
      ' MB',
    ),
    ...(typeof checks === 'string' ? [] : typeCheckBars(checks)),
    ...(typeof sizes === 'string'
      ? []
      : Object.entries(sizes).map(([name, bytes]) => atMost(`${name}, packed`, bytes / mebibyte, 1, ' MiB'))),
  ]
  return { results: { functions: recorders.counts, imports, typeChecks: checks, packedBytes: sizes }, bars }
}

type BoundCount = (typeof boundCounts)[number]

interface ImportFigures {
  readonly bareBytes: Series
  readonly entries: readonly { readonly specifier: string; readonly bound: Readonly<Record<BoundCount, Cost>> }[]
  readonly everything: Cost
}

async function measurePackages({ environment, functionsFile }: Recorders, rounds: number): Promise<ImportFigures> {
  const program = (count: BoundCount, entries: readonly SysEntry[]): Program => ({
    count,
    imports: entries.map(({ library, specifier }) => [library, specifier]),
    functionsFile,
    environment,
  })
  const programs = [
    ...sysEntries.flatMap((entry) => boundCounts.map((count) => program(count, [entry]))),
    program('all', sysEntries),
  ]
  const { bareBytes, costs } = await measureImports(programs, rounds)
  for (const [index, { libraries }] of costs.entries()) {
    const mapped = libraries.filter((file) => !file.includes('librecorder'))
    if (mapped.length > 0) throw new Error(`${mapped.join(', ')} is mapped, which only the recorders should be`)
    if (programs[index]?.count === '0' && libraries.length > 0) throw new Error('an import has loaded a library')
  }
  return {
    bareBytes,
    entries: sysEntries.map(({ specifier }, index) => {
      const [none, ten, all] = costs.slice(index * boundCounts.length) as [Cost, Cost, Cost]
      return { specifier, bound: { 0: none, 10: ten, all } }
    }),
    everything: costs.at(-1) as Cost,
  }
}

function typeCheckBars({ files }: TypeCheckFigures): Bar[] {
  return sysEntries.map(({ specifier }) =>
    atMost(
      `type-check of a file that imports '${specifier}'`,
      (files[specifier]?.median ?? Number.NaN) / 1000,
      1.5,
      ' s',
    ),
  )
}

function printImports({ entries, everything, bareBytes }: ImportFigures, { counts }: Recorders, rounds: number): void {
  console.log(
    `Import and binding in a fresh process, median of ${rounds}; bare Node ${process.version} takes ${number(bareBytes.median / 1e6)} MB\n`,
  )
  const cells = (name: string, cost: Cost): string[] => [
    name,
    String(cost.bound),
    number(cost.importMilliseconds.median),
    cost.bound === 0 ? '–' : number(cost.bindMilliseconds.median),
    number(cost.bytesOverBareNode.median / 1e6),
  ]
  console.log(
    table(
      ['', 'functions bound', 'import ms', 'binding ms', 'MB over bare Node'],
      [
        ...entries.flatMap(({ specifier, bound }) => boundCounts.map((count) => cells(specifier, bound[count]))),
        cells('all four', everything),
      ],
    ),
  )
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  console.log(
    `Binding is one call of each; ${all} functions, all but those with which the packages look for the others.`,
  )
}

function printTypeChecks(checks: TypeCheckFigures | string): void {
  if (typeof checks === 'string') {
    console.log(`without type-checks: ${checks}`)
    return
  }
  console.log(`\ntsc ${checks.typescript} --noEmit with skipLibCheck, as a process, s\n`)
  const rows = Object.entries(checks.files).map(([name, { median: middle }]) => [name, (middle / 1000).toFixed(2)])
  console.log(table(['a file that imports', 's'], rows))
}

function printSizes(sizes: Readonly<Record<string, number>> | string): void {
  if (typeof sizes === 'string') {
    console.log(`without packed sizes: ${sizes}`)
    return
  }
  console.log('')
  console.log(
    table(
      ['packed', 'KiB'],
      Object.entries(sizes).map(([name, bytes]) => [name, (bytes / 1024).toFixed(0)]),
    ),
  )
}

import { operations as everyOperation, number } from '@shoal/cli/bench'
import { ncclVersion } from '@shoal/nccl'
import { type Bar, leastBandwidth, slowest } from '../bars.js'
import { compileWithCuda } from '../compile.js'
import { aboutDevices, devicesFor, libraryPath } from '../devices.js'
import { type Outcome, onlyOf, type RunOptions } from '../options.js'
import { chooseDevices, nodeCommand } from '../processes/commands.js'
import { bytesOf, type Comparison, compareInPasses, measureSizes, roundsOfPass } from '../processes/comparison.js'
import { describeProcessors } from '../processes/placements.js'
import type { ProcessCommand } from '../processes/processGroup.js'
import { printRows, type Row, ratioBetween } from '../turns.js'
import { largestMessage, loopCountsFor, type OperationName, operationNames, sizesOf } from './sizes.js'

const kibibyte = 2 ** 10
const mebibyte = 2 ** 20

/** The distribution of ranks: all in one process, or one process per rank. */
const layouts = ['process', 'processes'] as const
type Layout = (typeof layouts)[number]

/**
 * `prepared` is Shoal with prepared collectives. `C again` is a second copy of the C program, which shows the noise
 * floor.
 */
const names = ['C', 'shoal', 'prepared', 'C again'] as const
type Name = (typeof names)[number]

/** The maximum time ratios to C for a small collective with all ranks in one process. */
const ofGroup = { shoal: 1.06, prepared: 1.02 }

interface NcclRow extends Row {
  readonly layout: Layout
  readonly operation: OperationName
  readonly bytes: number
  readonly busBandwidthGBps: Readonly<Record<string, number>>
  /** Ratios to C. */
  readonly busBandwidthRatio: Readonly<Record<string, number>>
}

interface Plan {
  readonly layout: Layout
  readonly operations: readonly OperationName[]
  readonly ranks: number
  readonly libnccl: string
  readonly options: RunOptions
}

/**
 * Collectives over all devices, in C and through @shoal/nccl: with all ranks in one process, and with one process per
 * rank.
 */
export async function benchNccl(options: RunOptions): Promise<Outcome> {
  const devices = chooseDevices(devicesFor(options), options)
  const { wantedLayouts, operations } = choose(options.only)
  const [version, libnccl] = [ncclVersion(), libraryPath('nccl')]
  const ranks = devices.length
  const rows: NcclRow[] = []
  const without = new Set<string>()
  const processors: Record<string, readonly number[][]> = {}
  for (const layout of wantedLayouts) {
    const plan = { layout, operations, ranks, libnccl, options }
    const found = await measureLayout(plan, version.value, without)
    rows.push(...found.rows.map((row) => ncclRow(row, layout, ranks)))
    processors[layout] = found.processors
  }
  console.log(`Collectives of f32, out of place, NCCL ${version} (${libnccl}): medians of rounds, and the ratio to C`)
  console.log('C again: another copy of the program in C, in the same rounds')
  const used = Object.entries(processors).flatMap(([layout, passes]) =>
    passes.map((list, pass) => [`${inWords(layout as Layout, ranks)}, pass ${pass + 1}`, list] as const),
  )
  console.log(`${describeProcessors(used)}\n`)
  for (const layout of wantedLayouts) print(rows, layout, ranks)
  for (const line of without) console.log(line)
  const details = { nccl: version.toString(), libnccl, without: [...without], processors }
  return { results: { ...aboutDevices(devices, options), ...details, cases: rows }, bars: barsOf(rows) }
}

/** If `--only` names no layout, all layouts; if it names no operation, all operations. */
function choose(only: readonly string[] | undefined): { wantedLayouts: Layout[]; operations: OperationName[] } {
  const words = onlyOf(only, [...layouts, ...operationNames])
  const some = <T extends string>(all: readonly T[]): T[] => {
    const picked = all.filter((one) => (words as readonly string[]).includes(one))
    return picked.length > 0 ? picked : [...all]
  }
  return { wantedLayouts: some(layouts), operations: some(operationNames) }
}

function measureLayout(plan: Plan, version: number, without: Set<string>) {
  const { layout, ranks, libnccl, options } = plan
  const perProcess = layout === 'process' ? ranks : 1
  const firsts = Array.from({ length: ranks / perProcess }, (_, index) => index * perProcess)
  const program = compileWithCuda('collectives.c')
  const words = firsts.map((first) => [first, perProcess, ranks, largestMessage(options)])
  const c = words.map((each): ProcessCommand => ({ command: program, arguments: [libnccl, ...each] }))
  const shoal = words.map((each) => nodeCommand(import.meta.url, 'child.js', each))
  const prepared = words.map((each) => nodeCommand(import.meta.url, 'child.js', [...each, 'prepared']))
  return compareInPasses({ C: c, shoal, prepared, 'C again': c }, async (comparison, readyLine) => {
    if (!readyLine.startsWith(`ready ${version}`)) throw new Error(`'${readyLine}', where NCCL is ${version}`)
    const rows: Row[] = []
    for (const operation of plan.operations) {
      if (readyLine.endsWith(`no ${operation}`)) {
        without.add(`without ${operation}: NCCL ${version} has none (since 2.28)`)
        continue
      }
      rows.push(...(await measureOperation(plan, operation, comparison)))
    }
    return rows
  })
}

async function measureOperation(
  { ranks, options }: Plan,
  operation: OperationName,
  comparison: Comparison<Name>,
): Promise<Row[]> {
  const sizes = sizesOf(operation, ranks, largestMessage(options))
  // Lets V8 compile the code and NCCL connect the devices.
  const longWarmUp = `${operation} ${sizes[0]} 1 ${options.device === 'sim' ? 20 : 5000}`
  for (const name of names) await comparison.run(name).measure(longWarmUp)
  return measureSizes({
    test: operation,
    sizes,
    names,
    countsFor: (bytes) => loopCountsFor(bytes, options),
    measure: (name, request) => comparison.run(name).measure(request),
    rounds: roundsOfPass(options.rounds, names),
    beforeRound: () => comparison.moveMainThreads(),
  })
}

function ncclRow(row: Row, layout: Layout, ranks: number): NcclRow {
  const [operation, bytes] = [row.case.split(' ')[0] as OperationName, bytesOf(row.case)]
  const factor = everyOperation.find(({ name }) => name === operation)?.busFactor(ranks) ?? Number.NaN
  const ofSubjects = (pick: (name: string) => number): Record<string, number> =>
    Object.fromEntries(Object.keys(row.subjects).map((name) => [name, pick(name)]))
  return {
    ...row,
    layout,
    operation,
    bytes,
    busBandwidthGBps: ofSubjects((name) => (bytes * factor) / (row.subjects[name]?.median ?? Number.NaN) / 1000),
    busBandwidthRatio: ofSubjects((name) => 1 / ratioBetween(row, name, 'C')),
  }
}

function inWords(layout: Layout, ranks: number): string {
  const all = ranks === 1 ? 'one rank' : `${ranks} ranks`
  return layout === 'process' ? `${all} in one process` : `${all}, one a process`
}

function print(rows: readonly NcclRow[], layout: Layout, ranks: number): void {
  const these = rows.filter((row) => row.layout === layout)
  console.log(`${inWords(layout, ranks)}\n`)
  printRows(these, names)
  console.log('')
  for (const { title, busBandwidthGBps, busBandwidthRatio } of these) {
    const each = names.map((name) => `${name} ${number(busBandwidthGBps[name] ?? Number.NaN)}`)
    console.log(
      `${title}, bus GB/s: ${each.join(', ')}; shoal to C ${number(busBandwidthRatio['shoal'] ?? Number.NaN)}`,
    )
  }
  console.log('')
}

/** Each bar uses the worst of its sizes. */
function barsOf(rows: readonly NcclRow[]): Bar[] {
  const groups = new Map<string, NcclRow[]>()
  for (const row of rows) {
    const name = `${row.operation}, ${row.layout === 'process' ? 'one process' : 'one process a rank'}`
    groups.set(name, [...(groups.get(name) ?? []), row])
  }
  return [...groups].flatMap(([name, these]) => [
    ...(['shoal', 'prepared'] as const).flatMap((subject) => {
      const small = these.filter((row) => row.bytes <= kibibyte)
      const what = `${name}${subject === 'prepared' ? ', prepared' : ''}: time at most 1 KiB against C`
      return slowest(what, small, these[0]?.layout === 'process' ? ofGroup[subject] : 1.1, subject)
    }),
    ...leastBandwidth(
      `${name}: bus bandwidth from 16 MiB against C`,
      these.filter((row) => row.bytes >= 16 * mebibyte),
      0.99,
    ),
  ])
}

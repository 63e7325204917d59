import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { number, table } from '@shoal/cli/bench'
import { ncclVersion } from '@shoal/nccl'
import { atMost } from '../bars.js'
import { compileWithCuda } from '../compile.js'
import { aboutDevices, devicesFor, libraryPath } from '../devices.js'
import type { Outcome, RunOptions } from '../options.js'
import { chooseDevices, nodeCommand } from '../processes/commands.js'
import { findShares } from '../processes/placements.js'
import { type ProcessCommand, ProcessGroup } from '../processes/processGroup.js'
import { median, medianRatio, type Series, series } from '../statistics.js'
import { inTurn } from '../turns.js'

/** One start of all ranks, in milliseconds; the slowest rank counts. */
interface Start {
  readonly init: number
  readonly first: number
  /** From before the first process was started until the last rank had its first sum. */
  readonly whole: number
}

/** The time from the start of the processes to a communicator, and to the first all-reduce. */
export async function benchRanks(options: RunOptions): Promise<Outcome> {
  const devices = chooseDevices(devicesFor(options), options)
  const ranks = devices.length
  const libnccl = libraryPath('nccl')
  const program = compileWithCuda('firstAllReduce.c')
  const subjects: Record<string, () => Promise<Start>> = {
    C: () =>
      startGroup('firstAllReduce.c', ranks, (rank) => ({
        command: program,
        arguments: [libnccl, rank, ranks],
      })),
    shoal: () => startGroup('Shoal', ranks, (rank) => nodeCommand(import.meta.url, 'child.js', [rank, ranks])),
    'shoal run': () => startJob(ranks),
  }
  const starts = new Map<string, Start[]>(Object.keys(subjects).map((name) => [name, []]))
  // The first start of each finds cold caches.
  for (const run of Object.values(subjects)) await run()
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [name, run] of inTurn(Object.entries(subjects), round)) starts.get(name)?.push(await run())
  }
  const of = (name: string, what: keyof Start): number[] => (starts.get(name) ?? []).map((start) => start[what])
  const figures = Object.fromEntries(
    [...starts.keys()].map((name) => [
      name,
      { init: series(of(name, 'init')), first: series(of(name, 'first')), whole: series(of(name, 'whole')) },
    ]),
  )
  print(figures, ranks)
  const above = of('shoal run', 'whole').map((value, round) => (value - (of('C', 'whole')[round] ?? Number.NaN)) / 1000)
  const bars = [
    atMost(`initRank of ${ranks} ranks against C`, medianRatio(of('shoal', 'init'), of('C', 'init')), 1.2),
    atMost(`shoal run of ${ranks} ranks to the first all-reduce, time above C`, median(above), 1.5, ' s'),
  ]
  const details = {
    ...aboutDevices(devices, options),
    nccl: ncclVersion().toString(),
    libnccl,
  }
  return { results: { ...details, ranks, unit: 'ms', starts: figures }, bars }
}

async function startGroup(name: string, ranks: number, command: (rank: number) => ProcessCommand): Promise<Start> {
  const begin = performance.now()
  const group = await ProcessGroup.start(
    name,
    Array.from({ length: ranks }, (_, rank) => command(rank)),
    findShares(ranks),
  )
  const whole = performance.now() - begin
  await group.end()
  return { ...slowestOf(group.readyLines), whole }
}

/** Of lines `ready VERSION INIT FIRST`, in microseconds. */
function slowestOf(lines: readonly string[]): Omit<Start, 'whole'> {
  const times = lines.map((line) => line.split(' ').slice(2).map(Number))
  const slowest = (index: number): number => Math.max(...times.map((each) => each[index] ?? Number.NaN)) / 1000
  return { init: slowest(0), first: slowest(1) }
}

/** Starts the ranks by `shoal run`. */
async function startJob(ranks: number): Promise<Start> {
  const program = fileURLToPath(new URL('../bin/shoal.js', import.meta.resolve('@shoal/cli')))
  const script = fileURLToPath(new URL('child.js', import.meta.url))
  const begin = performance.now()
  const child = spawn(process.execPath, [program, 'run', '-n', String(ranks), '--no-prefix', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  let whole = Number.NaN
  let errors = ''
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    if (lines.length === ranks) whole = performance.now() - begin
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000)
  })
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0 || lines.length !== ranks) throw new Error(`shoal run ended (${code}): ${lines.join('\n')}\n${errors}`)
  return { ...slowestOf(lines), whole }
}

function print(figures: Readonly<Record<string, Readonly<Record<keyof Start, Series>>>>, ranks: number): void {
  console.log(`${ranks} ranks, one a process: medians of starts, in milliseconds\n`)
  const cell = ({ median: middle, least, greatest }: Series): string =>
    `${number(middle)} (${number(least)}–${number(greatest)})`
  console.log(
    table(
      ['', 'initRank', 'first all-reduce', 'process start to the end of it'],
      Object.entries(figures).map(([name, { init, first, whole }]) => [name, cell(init), cell(first), cell(whole)]),
    ),
  )
}

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
import { SubjectProcess } from '../subjectProcess.js'
import { takeRounds } from '../turns.js'

/** One start of all ranks, in milliseconds; the slowest rank counts. */
interface Start {
  readonly init: number
  readonly first: number
  /** From before the first process starts until the last rank has its first sum. */
  readonly whole: number
}

/** The time from starting the processes to a communicator, and to the first all-reduce. */
export async function benchRanks(options: RunOptions): Promise<Outcome> {
  const devices = chooseDevices(devicesFor(options), options)
  const ranks = devices.length
  const libnccl = libraryPath('nccl')
  const program = compileWithCuda('firstAllReduce.c')
  const starts = await takeRounds(
    {
      C: () => startGroup('C', ranks, (rank) => ({ command: program, arguments: [libnccl, rank, ranks] })),
      shoal: () => startGroup('shoal', ranks, (rank) => nodeCommand(import.meta.url, 'child.js', [rank, ranks])),
      'shoal run': () => startJob(ranks),
    },
    options.rounds,
  )
  const of = (name: string, what: keyof Start): number[] => (starts[name] ?? []).map((start) => start[what])
  const figures = Object.fromEntries(
    Object.keys(starts).map((name) => [
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
  const details = { ...aboutDevices(devices, options), nccl: ncclVersion().toString(), libnccl }
  return { results: { ...details, ranks, unit: 'ms', starts: figures }, bars }
}

async function startGroup(name: string, ranks: number, command: (rank: number) => ProcessCommand): Promise<Start> {
  const begin = performance.now()
  const commands = Array.from({ length: ranks }, (_, rank) => command(rank))
  const group = await ProcessGroup.start(name, commands, findShares(ranks))
  const whole = performance.now() - begin
  await group.end()
  return { ...slowestOf(group.readyLines), whole }
}

/** Starts the ranks with `shoal run`, which forwards their output. */
async function startJob(ranks: number): Promise<Start> {
  const program = fileURLToPath(new URL('../bin/shoal.js', import.meta.resolve('@shoal/cli')))
  const script = fileURLToPath(new URL('child.js', import.meta.url))
  const begin = performance.now()
  const words = [program, 'run', '-n', ranks, '--no-prefix', script]
  const [job, line] = await SubjectProcess.start('shoal run', process.execPath, words)
  const lines = [line]
  while (lines.length < ranks) lines.push(await job.readLine())
  const whole = performance.now() - begin
  const code = await job.end()
  if (code !== 0) throw new Error(`shoal run ended (${code}): ${lines.join('\n')}`)
  return { ...slowestOf(lines), whole }
}

/** Parses lines `ready VERSION INIT FIRST`, in microseconds. */
function slowestOf(lines: readonly string[]): Omit<Start, 'whole'> {
  const times = lines.map((line) => line.split(' ').slice(2).map(Number))
  const slowest = (index: number): number => Math.max(...times.map((each) => each[index] ?? Number.NaN)) / 1000
  return { init: slowest(0), first: slowest(1) }
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

import { driverVersion } from '@shoal/driver'
import { ncclVersion } from '@shoal/nccl'
import { atLeast, atMost, type Bar, number, table } from '../bars.js'
import { devicesFor, libraryPath } from '../devices.js'
import { type Outcome, type RunOptions, UsageError } from '../options.js'
import { chooseDevices, compileForRanks, nodeMember } from '../ranks/contenders.js'
import { Crew, Stage } from '../ranks/crew.js'
import { describeFronts, findQuietPlaces, frontsOf } from '../ranks/places.js'
import { medianRatio, type Series, series } from '../statistics.js'
import { busFactor, iterationsFor, largestMessage, type Operation, operations, sizesOf } from './sizes.js'

const kibibyte = 2 ** 10
const mebibyte = 2 ** 20

/** How ranks are spread: all in one process, or one a process. */
const layouts = ['process', 'processes'] as const
type Layout = (typeof layouts)[number]

/** The second crew in C is there to tell how much the machine makes of two that are the same. */
const contestants = ['C', 'shoal', 'C again'] as const
type Contestant = (typeof contestants)[number]

interface Row {
  readonly layout: Layout
  readonly operation: Operation
  readonly bytes: number
  readonly iterations: number
  readonly unit: 'µs'
  readonly C: Series
  readonly shoal: Series
  readonly 'C again': Series
  /** Against C, as medians of the ratios of each round. */
  readonly timeRatio: number
  readonly timeRatioOfCAgain: number
  readonly busBandwidthGBps: { readonly C: number; readonly shoal: number }
  readonly busBandwidthRatio: number
  readonly busBandwidthRatioOfCAgain: number
}

/** Collectives over all devices, in one process and in one process a rank, in C and through @shoal/nccl. */
export async function benchNccl(options: RunOptions): Promise<Outcome> {
  const devices = chooseDevices(devicesFor(options), options)
  const { wantedLayouts, wantedOperations } = choose(options.only)
  const version = ncclVersion()
  const libnccl = libraryPath('nccl')
  const rows: Row[] = []
  const without: string[] = []
  const fronts: [Layout, readonly number[]][] = []
  for (const layout of wantedLayouts) {
    const found = await measureLayout(layout, wantedOperations, devices.length, libnccl, version.value, options)
    rows.push(...found.rows)
    without.push(...found.without)
    fronts.push([layout, found.fronts])
  }
  print(rows, devices.length, version.toString(), libnccl, fronts)
  for (const line of without) console.log(line)
  const details = {
    devices: devices.map((device) => device.name),
    driverVersion: driverVersion().toString(),
    nccl: version.toString(),
    libnccl,
    software: options.device === 'sim',
    without,
    fronts: Object.fromEntries(fronts),
  }
  return { results: { ...details, sizes: rows }, bars: barsOf(rows) }
}

function choose(only: readonly string[] | undefined): { wantedLayouts: Layout[]; wantedOperations: Operation[] } {
  const known: readonly string[] = [...layouts, ...operations]
  const strange = only?.find((word) => !known.includes(word))
  if (strange !== undefined) throw new UsageError(`--only ${strange}: there are ${known.join(', ')}`)
  const some = <T extends string>(all: readonly T[]): T[] => {
    const picked = all.filter((one) => only?.includes(one))
    return picked.length > 0 ? picked : [...all]
  }
  return { wantedLayouts: some(layouts), wantedOperations: some(operations) }
}

async function measureLayout(
  layout: Layout,
  wanted: readonly Operation[],
  ranks: number,
  libnccl: string,
  version: number,
  options: RunOptions,
): Promise<{ rows: Row[]; without: string[]; fronts: number[] }> {
  const most = largestMessage(options)
  const perProcess = layout === 'process' ? ranks : 1
  const firsts = Array.from({ length: ranks / perProcess }, (_, index) => index * perProcess)
  const program = compileForRanks('collectives.c', 'collectives')
  // Found once, so that every contestant gets the same.
  const places = findQuietPlaces(firsts.length)
  const startC = (name: string): Promise<Crew> =>
    Crew.start(
      name,
      firsts.map((first) => ({
        command: program,
        arguments: [libnccl, ...[first, perProcess, ranks, most].map(String)],
      })),
      places,
    )
  const crews: Readonly<Record<Contestant, Crew>> = {
    C: await startC('collectives.c'),
    shoal: await Crew.start(
      'Shoal',
      firsts.map((first) => nodeMember(import.meta.url, 'child.js', [first, perProcess, ranks, most])),
      places,
    ),
    'C again': await startC('collectives.c again'),
  }
  for (const name of contestants) {
    const { greeting } = crews[name]
    if (!greeting.startsWith(`ready ${version}`)) throw new Error(`${name} says '${greeting}' where NCCL is ${version}`)
  }
  const stage = new Stage()
  const ask = (name: Contestant, request: string): Promise<number> => {
    const crew = crews[name]
    stage.enter(crew)
    return crew.ask(request)
  }
  const rows: Row[] = []
  const without: string[] = []
  for (const operation of wanted) {
    if (crews.C.greeting.endsWith(`no ${operation}`)) {
      without.push(`without ${operation}: NCCL ${version} has none (since 2.28)`)
      continue
    }
    rows.push(...(await measureOperation(layout, operation, ranks, most, ask, options)))
  }
  for (const crew of Object.values(crews)) crew.close()
  // What still ends would make processors look busy that are not.
  for (const crew of Object.values(crews)) await crew.end()
  return { rows, without, fronts: frontsOf(places) }
}

async function measureOperation(
  layout: Layout,
  operation: Operation,
  ranks: number,
  most: number,
  ask: (name: Contestant, request: string) => Promise<number>,
  options: RunOptions,
): Promise<Row[]> {
  const sizes = sizesOf(operation, ranks, most)
  // All sides at work for a while before anything is timed: V8 compiles what runs often, NCCL connects the devices.
  const longWarmUp = `${operation} ${sizes[0]} 1 ${options.device === 'sim' ? 20 : 5000}`
  for (const name of contestants) await ask(name, longWarmUp)
  const times = sizes.map(() => ({ C: [] as number[], shoal: [] as number[], 'C again': [] as number[] }))
  for (let round = -1; round < options.rounds; round += 1) {
    // All sizes in every round: what disturbs the machine for seconds then spoils a few rounds of each, and no median.
    for (const [index, bytes] of sizes.entries()) {
      const { iterations, warmUps, turns } = iterationsFor(bytes, options)
      const request = `${operation} ${bytes} ${iterations} ${warmUps}`
      for (let turn = 0; turn < turns; turn += 1) {
        // Who goes first changes from turn to turn.
        const order = (round + turn) % 2 === 0 ? contestants : [...contestants].reverse()
        for (const name of order) {
          const time = await ask(name, request)
          // The first round warms up.
          if (round >= 0) times[index]?.[name].push(time)
        }
      }
    }
  }
  return sizes.map((bytes, index) => {
    const rounds = times[index] ?? { C: [], shoal: [], 'C again': [] }
    const [cTimes, ourTimes] = [series(rounds.C), series(rounds.shoal)]
    const bandwidth = ({ median }: Series): number => (bytes / median / 1000) * busFactor(operation, ranks)
    return {
      layout,
      operation,
      bytes,
      iterations: iterationsFor(bytes, options).iterations,
      unit: 'µs',
      C: cTimes,
      shoal: ourTimes,
      'C again': series(rounds['C again']),
      timeRatio: medianRatio(rounds.shoal, rounds.C),
      timeRatioOfCAgain: medianRatio(rounds['C again'], rounds.C),
      busBandwidthGBps: { C: bandwidth(cTimes), shoal: bandwidth(ourTimes) },
      busBandwidthRatio: medianRatio(rounds.C, rounds.shoal),
      busBandwidthRatioOfCAgain: medianRatio(rounds.C, rounds['C again']),
    }
  })
}

function inWords(layout: Layout, ranks: number): string {
  const all = ranks === 1 ? 'one rank' : `${ranks} ranks`
  return layout === 'process' ? `${all} in one process` : `${all}, one a process`
}

function print(
  rows: readonly Row[],
  ranks: number,
  version: string,
  libnccl: string,
  fronts: readonly (readonly [Layout, readonly number[]])[],
): void {
  console.log(`Collectives of f32, out of place, NCCL ${version} (${libnccl}): medians of rounds`)
  console.log('C / C: another crew of the same program in C, which took part in the same rounds')
  console.log(`${describeFronts(fronts.map(([layout, processors]) => [inWords(layout, ranks), processors]))}\n`)
  for (const layout of layouts) {
    const these = rows.filter((row) => row.layout === layout)
    if (these.length === 0) continue
    console.log(`${inWords(layout, ranks)}\n`)
    console.log(
      table(
        ['operation', 'bytes', 'C µs', 'Shoal µs', 'Shoal / C', 'C / C', 'C bus GB/s', 'Shoal bus GB/s', 'Shoal / C'],
        these.map((row) => [
          row.operation,
          String(row.bytes),
          number(row.C.median),
          number(row.shoal.median),
          row.timeRatio.toFixed(3),
          row.timeRatioOfCAgain.toFixed(3),
          number(row.busBandwidthGBps.C),
          number(row.busBandwidthGBps.shoal),
          row.busBandwidthRatio.toFixed(3),
        ]),
      ),
    )
    console.log('')
  }
}

/** The worst of all sizes that a bar is about. */
function barsOf(rows: readonly Row[]): Bar[] {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const name = `${row.operation}, ${row.layout === 'process' ? 'one process' : 'one process a rank'}`
    groups.set(name, [...(groups.get(name) ?? []), row])
  }
  return [...groups].flatMap(([name, these]) => {
    const small = these.filter((row) => row.bytes <= kibibyte)
    const large = these.filter((row) => row.bytes >= 16 * mebibyte)
    return [
      ...(small.length === 0
        ? []
        : [
            atMost(
              `${name}: time at most 1 KiB against C`,
              {
                value: Math.max(...small.map((row) => row.timeRatio)),
                ofCAgain: Math.max(...small.map((row) => row.timeRatioOfCAgain)),
              },
              1.1,
            ),
          ]),
      ...(large.length === 0
        ? []
        : [
            atLeast(
              `${name}: bus bandwidth from 16 MiB against C`,
              {
                value: Math.min(...large.map((row) => row.busBandwidthRatio)),
                ofCAgain: Math.min(...large.map((row) => row.busBandwidthRatioOfCAgain)),
              },
              0.99,
            ),
          ]),
    ]
  })
}

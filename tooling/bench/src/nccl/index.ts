import { driverVersion } from '@shoal/driver'
import { ncclVersion } from '@shoal/nccl'
import { atLeast, atMost, type Bar, number, table } from '../bars.js'
import { devicesFor, libraryPath } from '../devices.js'
import { type Outcome, type RunOptions, UsageError } from '../options.js'
import { chooseDevices, compileForRanks, nodeMember } from '../ranks/contenders.js'
import { Crew, type Member, Stage } from '../ranks/crew.js'
import { describeFronts, findQuietFronts, findQuietPlaces, frontsOf } from '../ranks/places.js'
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
  const fronts: [Layout, readonly number[][]][] = []
  for (const layout of wantedLayouts) {
    const found = await measureLayout({
      layout,
      operations: wantedOperations,
      ranks: devices.length,
      libnccl,
      version: version.value,
      options,
    })
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

/** The times of one size, round after round. */
type Rounds = Record<Contestant, number[]>

interface Plan {
  readonly layout: Layout
  readonly operations: readonly Operation[]
  readonly ranks: number
  readonly libnccl: string
  readonly version: number
  readonly options: RunOptions
}

interface Measured {
  /** Of each operation, by size. */
  readonly rounds: ReadonlyMap<Operation, readonly Rounds[]>
  readonly without: readonly string[]
  readonly fronts: readonly number[]
}

/**
 * Where in the devices' memory buffers lie changes the bandwidth by some percent, and each process gets another place, so
 * every contestant is the first to start in one sitting, the second in another.
 */
async function measureLayout(plan: Plan): Promise<{ rows: Row[]; without: string[]; fronts: readonly number[][] }> {
  const rounds = Math.max(1, Math.round(plan.options.rounds / contestants.length))
  const sittings: Measured[] = []
  for (let sitting = 0; sitting < contestants.length; sitting += 1) {
    const order = [...contestants.slice(sitting), ...contestants.slice(0, sitting)]
    sittings.push(await measureSitting({ ...plan, options: { ...plan.options, rounds } }, order))
  }
  const rows = plan.operations.flatMap((operation) => {
    const each = sittings.flatMap((sitting) => {
      const found = sitting.rounds.get(operation)
      return found === undefined ? [] : [found]
    })
    if (each.length === 0) return []
    const sizes = sizesOf(operation, plan.ranks, largestMessage(plan.options))
    return sizes.map((bytes, index) => {
      const parts = each.flatMap((bySize) => bySize[index] ?? [])
      return rowOf(plan, operation, bytes, joinRounds(parts))
    })
  })
  return {
    rows,
    without: [...new Set(sittings.flatMap(({ without }) => without))],
    fronts: sittings.map(({ fronts }) => [...fronts]),
  }
}

async function measureSitting(plan: Plan, order: readonly Contestant[]): Promise<Measured> {
  const { layout, ranks, libnccl, version, options } = plan
  const most = largestMessage(options)
  const perProcess = layout === 'process' ? ranks : 1
  const firsts = Array.from({ length: ranks / perProcess }, (_, index) => index * perProcess)
  const program = compileForRanks('collectives.c', 'collectives')
  // Found once, so that every contestant gets the same.
  const places = findQuietPlaces(firsts.length)
  const memberOf = (name: Contestant, first: number): Member => {
    const words = [first, perProcess, ranks, most]
    return name === 'shoal'
      ? nodeMember(import.meta.url, 'child.js', words)
      : { command: program, arguments: [libnccl, ...words.map(String)] }
  }
  const crews = new Map<Contestant, Crew>()
  const stage = new Stage()
  for (const name of order) {
    const members = firsts.map((first) => memberOf(name, first))
    const crew = await Crew.start(name, members, places)
    if (!crew.greeting.startsWith(`ready ${version}`))
      throw new Error(`${name} says '${crew.greeting}' where NCCL is ${version}`)
    crews.set(name, crew)
    stage.leave(crew)
  }
  const ask = (name: Contestant, request: string): Promise<number> => {
    const crew = crews.get(name) as Crew
    stage.enter(crew)
    return crew.ask(request)
  }
  const findFronts = (): void => {
    stage.clear()
    findQuietFronts(places)
  }
  const rounds = new Map<Operation, Rounds[]>()
  const without: string[] = []
  for (const operation of plan.operations) {
    if (crews.get('C')?.greeting.endsWith(`no ${operation}`) === true) {
      without.push(`without ${operation}: NCCL ${version} has none (since 2.28)`)
      continue
    }
    rounds.set(operation, await measureOperation(plan, operation, ask, findFronts))
  }
  for (const crew of crews.values()) crew.close()
  // What still ends would make processors look busy that are not.
  for (const crew of crews.values()) await crew.end()
  return { rounds, without, fronts: frontsOf(places) }
}

async function measureOperation(
  { ranks, options }: Plan,
  operation: Operation,
  ask: (name: Contestant, request: string) => Promise<number>,
  findFronts: () => void,
): Promise<Rounds[]> {
  const sizes = sizesOf(operation, ranks, largestMessage(options))
  // All sides at work for a while before anything is timed: V8 compiles what runs often, NCCL connects the devices.
  const longWarmUp = `${operation} ${sizes[0]} 1 ${options.device === 'sim' ? 20 : 5000}`
  for (const name of contestants) await ask(name, longWarmUp)
  const times = sizes.map((): Rounds => ({ C: [], shoal: [], 'C again': [] }))
  for (let round = -1; round < options.rounds; round += 1) {
    findFronts()
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
  return times
}

function joinRounds(parts: readonly Rounds[]): Rounds {
  const all = (name: Contestant): number[] => parts.flatMap((part) => part[name])
  return { C: all('C'), shoal: all('shoal'), 'C again': all('C again') }
}

function rowOf({ layout, ranks, options }: Plan, operation: Operation, bytes: number, rounds: Rounds): Row {
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
  fronts: readonly (readonly [Layout, readonly number[][]])[],
): void {
  console.log(`Collectives of f32, out of place, NCCL ${version} (${libnccl}): medians of rounds`)
  console.log('C / C: another crew of the same program in C, which took part in the same rounds')
  const places = fronts.flatMap(([layout, sittings]) =>
    sittings.map((processors, sitting) => [`${inWords(layout, ranks)}, sitting ${sitting + 1}`, processors] as const),
  )
  console.log(`${describeFronts(places)}\n`)
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

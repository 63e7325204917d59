import { driverVersion } from '@shoal/driver'
import { formatNvshmemVersion, nvshmem } from '@shoal/nvshmem-sys'
import { atLeast, atMost, type Bar, number } from '../bars.js'
import { devicesFor, libraryPath } from '../devices.js'
import { type Outcome, type RunOptions, UsageError } from '../options.js'
import { chooseDevices, compileForRanks, nodeMember } from '../ranks/contenders.js'
import { Crew, type Member, Stage } from '../ranks/crew.js'
import { describeFronts, findQuietFronts, findQuietPlaces, frontsOf, type Place } from '../ranks/places.js'
import { joinSittings, printRows, type Row, ratioBetween, takeTurns } from '../turns.js'
import {
  type Contestant,
  contestants,
  contestantsOf,
  type Group,
  groupNames,
  groups,
  isCollective,
  iterationsFor,
  largestMessage,
  sizesOf,
} from './cases.js'

const kibibyte = 2 ** 10
const mebibyte = 2 ** 20
const probeMilliseconds = 10_000
// Keeps the bootstrap on this machine, whatever interfaces it has.
const environment = { NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME: 'lo' }

/** Puts, gets, atomics and barriers of NVSHMEM, in C, through the raw package and through the safe one. */
export async function benchNvshmem(options: RunOptions): Promise<Outcome> {
  const devices = chooseDevices(devicesFor(options), options)
  if (devices.length < 2) throw new Error('one device: puts and gets need a second one')
  const wanted = choose(options.only)
  const library = libraryPath('nvshmem')
  // Where in the device's memory a heap lies changes the bandwidth by some percent, and each process gets another place,
  // so every contestant is the first to start in one sitting, the second in another.
  const sittings: Row[][] = []
  const without = new Set<string>()
  const fronts: number[][] = []
  const rounds = Math.max(1, Math.round(options.rounds / contestants.length))
  for (let sitting = 0; sitting < contestants.length; sitting += 1) {
    const bench = new Bench(devices.length, library, { ...options, rounds })
    const rows: Row[] = []
    try {
      await bench.start([...contestants.slice(sitting), ...contestants.slice(0, sitting)])
      for (const group of wanted) rows.push(...(await bench.measure(group)))
    } finally {
      await bench.end()
    }
    sittings.push(rows)
    fronts.push(bench.fronts)
    for (const line of bench.without) without.add(line)
  }
  const rows = joinSittings(sittings)
  const version = formatNvshmemVersion(nvshmem.version ?? 0)
  console.log(
    `NVSHMEM ${version} (${library}), ${devices.length} PEs, one a process: medians of rounds, and the ratio to C`,
  )
  console.log(`${describeFronts(fronts.map((processors, sitting) => [`sitting ${sitting + 1}`, processors]))}\n`)
  printRows(rows, contestants)
  printBandwidths(rows)
  for (const line of without) console.log(line)
  const details = {
    devices: devices.map((device) => device.name),
    driverVersion: driverVersion().toString(),
    nvshmem: version,
    library,
    software: options.device === 'sim',
    without: [...without],
    fronts,
  }
  return { results: { ...details, cases: rows }, bars: barsOf(rows) }
}

function choose(only: readonly string[] | undefined): readonly Group[] {
  const known: readonly string[] = groupNames
  const strange = only?.find((word) => !known.includes(word))
  if (strange !== undefined) throw new UsageError(`--only ${strange}: there are ${known.join(', ')}`)
  return only === undefined ? groupNames : groupNames.filter((group) => only.includes(group))
}

class Bench {
  /** What could not be measured, and why. */
  readonly without: string[] = []
  readonly #pes: number
  readonly #library: string
  readonly #options: RunOptions
  readonly #most: number
  readonly #crews = new Map<string, Crew>()
  readonly #stage = new Stage()
  #places: readonly Place[] | undefined

  constructor(pes: number, library: string, options: RunOptions) {
    this.#pes = pes
    this.#library = library
    this.#options = options
    this.#most = largestMessage(options)
  }

  /** The processors that main threads were bound to; none where nothing is. */
  get fronts(): number[] {
    return frontsOf(this.#places)
  }

  /** Starts the contestants in this order. */
  async start(order: readonly Contestant[]): Promise<void> {
    // Found once, so that every contestant gets the same.
    this.#places = findQuietPlaces(this.#pes)
    for (const name of order) {
      if (name === 'C' || name === 'C again') {
        await this.#startC(name)
        continue
      }
      const script = `${name}Child.js`
      const crew = await this.#crew(name, (pe) =>
        nodeMember(import.meta.url, script, [pe, this.#pes, this.#most], environment),
      )
      this.#crews.set(name, crew)
    }
    for (const crew of this.#crews.values()) this.#stage.leave(crew)
    const greetings = new Set([...this.#crews.values()].map((crew) => crew.greeting))
    if (greetings.size > 1) throw new Error(`not the same NVSHMEM: ${[...greetings].join(', ')}`)
  }

  async measure(group: Group): Promise<Row[]> {
    const rows: Row[] = []
    if (group === 'atomics' && !(await this.#hasAtomics())) return rows
    for (const test of groups[group]) {
      rows.push(...(await this.#measureCase(test)))
    }
    return rows
  }

  async end(): Promise<void> {
    await Promise.all([...this.#crews.values()].map((crew) => crew.end()))
  }

  async #measureCase(test: string): Promise<Row[]> {
    this.#stage.clear()
    findQuietFronts(this.#places)
    const sizes = sizesOf(test, this.#most)
    // V8 compiles what runs often.
    const taking = contestantsOf(test)
    for (const name of taking) await this.#ask(name, `${test} ${sizes[0]}`, 1, this.#warmUps)
    const cases = Object.fromEntries(
      sizes.map((bytes) => {
        const { iterations, loops } = iterationsFor(bytes, this.#options)
        const title = sizes.length > 1 ? `${test} ${bytes} B` : test
        return [`${test} ${bytes}`, { title, unit: 'µs', count: iterations, loops }]
      }),
    )
    const entrants = taking.map((name) => ({
      name,
      cases: Object.keys(cases),
      ask: (request: string, count: number) => {
        const { warmUps } = iterationsFor(Number(request.split(' ')[1]), this.#options)
        return this.#ask(name, request, count, warmUps)
      },
    }))
    return takeTurns(cases, entrants, this.#options.rounds)
  }

  get #warmUps(): number {
    return this.#options.device === 'sim' ? 20 : 3000
  }

  #ask(name: string, request: string, count: number, warmUps: number): Promise<number> {
    const crew = this.#crews.get(name) as Crew
    this.#stage.enter(crew)
    const line = `${request} ${count} ${warmUps}`
    return isCollective(request.split(' ')[0] ?? '') ? crew.ask(line) : crew.askFirst(line)
  }

  /** Tries an atomic in C: those of NVSHMEM 3.4.5 say that they are not implemented, and there is nothing to compare with. */
  async #hasAtomics(): Promise<boolean> {
    const c = this.#crews.get('C') as Crew
    this.#stage.enter(c)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer in ${probeMilliseconds / 1000} s`)), probeMilliseconds)
    })
    try {
      await Promise.race([c.askFirst('atomics-work 8 1 1'), late])
      return true
    } catch (error) {
      this.without.push(`without atomics, which this NVSHMEM does not do in C: ${(error as Error).message}`)
      this.#stage.leave(c)
      c.close()
      await this.#startC('C')
      this.#stage.leave(this.#crews.get('C') as Crew)
      return false
    } finally {
      clearTimeout(timer)
    }
  }

  async #startC(name: Contestant): Promise<void> {
    const program = compileForRanks('nvshmem.c', 'nvshmem')
    const words = (pe: number): string[] => [this.#library, ...[pe, this.#pes, this.#most].map(String)]
    this.#crews.set(
      name,
      await this.#crew(name === 'C' ? 'nvshmem.c' : 'nvshmem.c again', (pe) => ({
        command: program,
        arguments: words(pe),
        environment,
      })),
    )
  }

  #crew(name: string, member: (pe: number) => Member): Promise<Crew> {
    return Crew.start(
      name,
      Array.from({ length: this.#pes }, (_, pe) => member(pe)),
      this.#places,
    )
  }
}

function bytesOf(row: Row): number {
  return Number(row.case.split(' ')[1])
}

function printBandwidths(rows: readonly Row[]): void {
  const lines = rows
    .filter((row) => /^(put|get) /.test(row.case) && bytesOf(row) >= mebibyte)
    .map((row) => {
      const each = Object.entries(row.contestants).map(
        ([name, { median }]) => `${name} ${number(bytesOf(row) / median / 1000)}`,
      )
      return `${row.title}, GB/s: ${each.join(', ')}`
    })
  if (lines.length > 0) console.log(`\n${lines.join('\n')}`)
}

/** The worst of all that a bar is about. */
function barsOf(rows: readonly Row[]): Bar[] {
  const [ours, again] = ['shoal', 'C again']
  const those = (pattern: RegExp, fits: (bytes: number) => boolean = () => true): Row[] =>
    rows.filter((row) => pattern.test(row.case) && fits(bytesOf(row)))
  const greatest = (found: readonly Row[], name: string): number =>
    Math.max(...found.map((row) => row.ratioToC[name] ?? Number.NaN))
  const slowest = (what: string, found: readonly Row[]): Bar[] =>
    found.length === 0 ? [] : [atMost(what, { value: greatest(found, ours), ofCAgain: greatest(found, again) }, 1.1)]
  const least = (found: readonly Row[], name: string): number =>
    Math.min(...found.map((row) => ratioBetween(row, 'C', name)))
  return [
    ...['put', 'get'].flatMap((test) => {
      const large = those(new RegExp(`^${test} `), (bytes) => bytes >= mebibyte)
      return [
        ...(large.length === 0
          ? []
          : [
              atLeast(
                `${test} on a stream from 1 MiB, bandwidth against C`,
                { value: least(large, ours), ofCAgain: least(large, again) },
                0.99,
              ),
            ]),
        ...slowest(
          `${test} on a stream at most 1 KiB, latency against C`,
          those(new RegExp(`^${test}-latency `), (bytes) => bytes <= kibibyte),
        ),
      ]
    }),
    ...slowest('barrier of all PEs, time against C', those(/^barrier /)),
    ...slowest('barrier on a stream, time against C', those(/^barrier-on-stream /)),
    ...slowest('host atomics, time against C', those(/^atomic-/)),
  ]
}

import { number, table } from '@shoal/cli/bench'
import type { Device } from '@shoal/driver'
import { atLeast, atMost, type Bar } from '../bars.js'
import { compileWithCuda } from '../compile.js'
import { aboutDevices, devicesFor } from '../devices.js'
import { measureCalls, printCalls } from '../gpu.js'
import type { Outcome, RunOptions } from '../options.js'
import { median } from '../statistics.js'
import { SubjectProcess } from '../subjectProcess.js'
import { printBandwidths, printRows, type Row, ratioBetween } from '../turns.js'
import { measureCopies } from './copies.js'
import { measureExchange } from './exchange.js'
import { measureMapping } from './mapping.js'
import { measureRanges, type RangeFigures } from './ranges.js'
import { inWords, type Sizes, sizesFor } from './sizes.js'

const mebibyte = 2 ** 20

/**
 * Mapping, growing, stream-ordered allocation, copying and sharing of memory, with C, Shoal and the Python bindings.
 */
export async function benchMemory(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const sizes = sizesFor(options)
  const words = [sizes.mapBytes, sizes.stepBytes, sizes.steps]
  const [c] = await SubjectProcess.start('memory.c', compileWithCuda('memory.c'), words)
  const { rows: mapping, isIntact } = await measureMapping(device, c, sizes, options.rounds)
  const pool = await measureCalls(device, options, ['pool'])
  const copies = await measureCopies(device, sizes, options.rounds)
  const exchange = await measureExchange(sizes, options.rounds)
  const ranges = await measureRanges(c, sizes)
  c.close()

  console.log('Memory (median of rounds, each the best of its loops), and the ratio to C\n')
  printRows([...mapping, ...exchange], ['C', 'raw', 'driver'])
  console.log('')
  printCalls(pool)
  console.log('')
  printRows(copies, ['C', 'driver', 'awaited'])
  printBandwidths(copies, () => sizes.copyBytes)
  printRanges(ranges, sizes)

  const bars = barsOf({ mapping, pool: pool.rows, copies, exchange, ranges, isIntact, sizes })
  const results = {
    ...aboutDevices([device], options),
    sizes,
    python: pool.python,
    cases: [...mapping, ...pool.rows, ...copies, ...exchange],
    growsInPlace: isIntact,
    ranges,
  }
  return { results, bars }
}

interface Figures {
  readonly mapping: readonly Row[]
  readonly pool: readonly Row[]
  readonly copies: readonly Row[]
  readonly exchange: readonly Row[]
  readonly ranges: Readonly<Record<string, RangeFigures>>
  readonly isIntact: boolean
  readonly sizes: Sizes
}

function barsOf({ mapping, pool, copies, exchange, ranges, isIntact, sizes }: Figures): Bar[] {
  const row = (rows: readonly Row[], name: string): Row | undefined => rows.find((one) => one.case === name)
  const toC = (rows: readonly Row[], name: string): number => row(rows, name)?.ratioToC['driver'] ?? Number.NaN
  const bandwidth = (name: string): number => ratioBetween(row(copies, name), 'C', 'driver')
  const [shared] = exchange
  const [cTimes, ourTimes] = [shared?.subjects['C']?.rounds ?? [], shared?.subjects['driver']?.rounds ?? []]
  const aboveC = median(ourTimes.map((value, round) => (value - (cTimes[round] ?? Number.NaN)) / 1000))
  const { first, last } = ranges['driver'] as RangeFigures
  const toBindings = ratioBetween(row(pool, 'pool'), 'driver', 'cuda.bindings')
  const [mapped, copied] = [inWords(sizes.mapBytes), inWords(sizes.copyBytes)]
  const grown = `${inWords(sizes.stepBytes * sizes.steps)} in steps of ${inWords(sizes.stepBytes)}`
  const made = `${sizes.ranges} ranges made and disposed of`
  return [
    atMost(`create, map, set access, wait, unmap, release ${mapped}, ratio to C`, toC(mapping, 'map'), 1.05),
    atMost(`growable buffer, ${grown}, ratio to C`, toC(mapping, 'grow'), 1.05),
    atLeast('growable buffer, address and first step as before (1: yes)', isIntact ? 1 : 0, 1),
    atMost('stream-ordered allocate and free, 4 KiB, ratio to C', toC(pool, 'pool'), 1.15),
    ...(Number.isNaN(toBindings)
      ? []
      : [atMost('stream-ordered allocate and free, 4 KiB, ratio to cuda.bindings', toBindings, 1)]),
    atLeast(`pinned host to device, ${copied}, bandwidth against C`, bandwidth('toDevice'), 0.99),
    atLeast(`device to pinned host, ${copied}, bandwidth against C`, bandwidth('toHost'), 0.99),
    atMost('export, send to another process, import, map, time above C', aboveC, 1, ' ms'),
    atMost(`${made}, growth of resident memory`, (last.residentBytes - first.residentBytes) / mebibyte, 2, ' MiB'),
    atMost(`${made}, growth of device memory`, (first.freeDeviceBytes - last.freeDeviceBytes) / mebibyte, 0, ' MiB'),
    atMost(`${made}, descriptors left open`, last.descriptors - first.descriptors, 0),
  ]
}

function printRanges(ranges: Readonly<Record<string, RangeFigures>>, { warmUpRanges, ranges: count }: Sizes): void {
  console.log(`\nReserve, create, map, export and release: after ${warmUpRanges} ranges, and after ${count} more\n`)
  const change = (first: number, last: number, unit: number): string =>
    `${number(first / unit)} → ${number(last / unit)}`
  console.log(
    table(
      ['', 'µs each', 'resident MiB', 'free device MiB', 'descriptors'],
      Object.entries(ranges).map(([name, { first, last, microseconds }]) => [
        name,
        number(microseconds),
        change(first.residentBytes, last.residentBytes, mebibyte),
        change(first.freeDeviceBytes, last.freeDeviceBytes, mebibyte),
        change(first.descriptors, last.descriptors, 1),
      ]),
    ),
  )
}

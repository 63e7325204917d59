import { nvshmemVersion } from '@shoal/nvshmem'
import { type BenchOptions, firstRuns } from '../options.js'
import type { Party } from '../party.js'
import { type Column, figure, headLines, row } from '../report/columns.js'
import { Output } from '../report/output.js'
import { introduction, reportOf } from '../report/report.js'
import { asPe, type Pe } from './pes.js'
import { drain, meanTimeOf } from './timing.js'

/** A row of the table of barriers. */
export interface BarrierRow {
  readonly operation: string
  readonly from: 'host' | 'stream'
  /** Mean over iterations and PEs; microseconds. */
  readonly latency: number
}

const columns: readonly Column[] = [
  { head: 'operation', unit: '', width: 12 },
  { head: 'from', unit: '', width: 8 },
  { head: 'latency', unit: '(us)', width: 10 },
]

/** Measures what it takes until all PEs have met. */
export async function benchBarrier(party: Party, options: BenchOptions): Promise<number> {
  const output = party.isFirst ? await Output.open(options) : undefined
  const library = { name: 'NVSHMEM', version: nvshmemVersion().toString() }
  output?.print(...introduction(reportOf(party, library, [], options)), ...headLines(columns))
  const rows = await asPe(options, party, (pe) => measure(pe, options))
  for (const { operation, from, latency } of rows) output?.print(row(columns, [operation, from, figure(latency)]))
  const names = [...new Set(rows.map(({ operation }) => operation))]
  const bars = (['host', 'stream'] as const).map((from) => ({
    name: `from the ${from}`,
    values: names.map((name) => rows.find((one) => one.operation === name && one.from === from)?.latency ?? null),
  }))
  await output?.write(reportOf(party, library, rows, options), {
    title: `barriers of ${party.worldSize} PEs`,
    diagrams: [{ title: 'latency', unit: 'µs', logarithmic: false, names, bars }],
  })
  return 0
}

async function measure({ party, session, stream }: Pe, { iterations, warmUps }: BenchOptions): Promise<BarrierRow[]> {
  // The first of each is awaited, so that what is wrong with it is told.
  await session.barrierAll()
  await session.barrierAllOnStream({ stream })
  await session.syncAllOnStream({ stream })
  await stream.synchronize()
  const cases: readonly [operation: string, from: BarrierRow['from'], once: () => void][] = [
    ['barrier', 'host', () => session.barrierAllSync()],
    ['sync', 'host', () => session.syncAllSync()],
    ['barrier', 'stream', () => void session.barrierAllOnStream({ stream })],
    ['sync', 'stream', () => void session.syncAllOnStream({ stream })],
  ]
  const rows: BarrierRow[] = []
  for (const [operation, from, once] of cases) {
    const latency = await meanTimeOf(party, iterations, firstRuns + warmUps, (rounds) => {
      for (let i = 0; i < rounds; i += 1) once()
      if (from === 'stream') drain(stream)
    })
    rows.push({ operation, from, latency })
  }
  return rows
}

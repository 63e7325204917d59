import { type BenchOptions, firstRuns } from '../options.js'
import { type Column, figure, row } from '../report/columns.js'
import { repeat, timeOf } from '../timing.js'
import type { NvshmemTest, Pe } from './pes.js'

/** A row of the table of barriers. */
export interface BarrierRow {
  readonly operation: string
  readonly from: 'host' | 'stream'
  /** Mean over iterations and PEs, in microseconds. */
  readonly latency: number
}

const columns: readonly Column[] = [
  { head: 'operation', unit: '', width: 12 },
  { head: 'from', unit: '', width: 8 },
  { head: 'latency', unit: '(us)', width: 10 },
]

/** Measures the time until all PEs have reached a barrier. */
export const barrierTest: NvshmemTest = {
  columns,
  async run(pe, options, output) {
    const rows = await measure(pe, options)
    for (const { operation, from, latency } of rows) output.print(row(columns, [operation, from, figure(latency)]))
    const names = [...new Set(rows.map(({ operation }) => operation))]
    const bars = (['host', 'stream'] as const).map((from) => ({
      name: `from the ${from}`,
      values: names.map((name) => rows.find((one) => one.operation === name && one.from === from)?.latency ?? null),
    }))
    await output.write(rows, {
      title: `barriers of ${pe.rankGroup.worldSize} PEs`,
      diagrams: [{ title: 'latency', unit: 'µs', names, bars }],
    })
    return 0
  },
}

async function measure(
  { rankGroup, session, stream }: Pe,
  { iterations, warmUps }: BenchOptions,
): Promise<BarrierRow[]> {
  // Await the first call of each, so that its errors are thrown here.
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
    await rankGroup.barrier()
    const own = timeOf(
      iterations,
      firstRuns + warmUps,
      repeat(once, () => from === 'stream' && stream.synchronizeSync()),
    )
    const latency = (await rankGroup.sum(own)) / rankGroup.processes
    rows.push({ operation, from, latency })
  }
  return rows
}

import { ncclVersion } from '@shoal/nccl'
import { UsageError } from '../../command.js'
import type { CollectiveRow } from '../figures.js'
import type { BenchOptions } from '../options.js'
import { joinRankGroup } from '../rankGroup.js'
import { wrongLine } from '../report/columns.js'
import { Output } from '../report/output.js'
import type { Diagram } from '../report/plot.js'
import { measureCollective, variantsOf } from './measure.js'
import type { Operation } from './operations.js'
import { collectiveHead, collectiveLine, collectiveSummary } from './print.js'

/** Measures a collective, prints its table and writes its files. Returns the exit status. */
export async function benchCollective(operation: Operation, options: BenchOptions): Promise<number> {
  const rankGroup = await joinRankGroup(options)
  try {
    if (rankGroup.isRank && options.devices !== undefined)
      throw new UsageError(
        `--devices ${options.devices}: this process is a rank, with one device; its launcher says how many there are`,
      )
    const variants = variantsOf(operation, rankGroup.worldSize, options)
    const library = { name: 'NCCL', version: ncclVersion().toString() }
    const output = await Output.open(rankGroup, library, options, collectiveHead())
    const rows = await measureCollective(operation, variants, rankGroup, options, (row) =>
      output.print(collectiveLine(row)),
    )
    const summary = collectiveSummary(rows)
    const { wrong, averageBusBandwidth } = summary
    output.print(wrongLine('elements', wrong), `# average bus bandwidth: ${averageBusBandwidth.toPrecision(5)} GB/s`)
    const title = `${operation.name} over ${rankGroup.worldSize} ranks`
    await output.write(rows, { title, diagrams: diagramsOf(rows) }, summary)
    return wrong === null || wrong === 0 ? 0 : 1
  } finally {
    await rankGroup.leave()
  }
}

function diagramsOf(rows: readonly CollectiveRow[]): Diagram[] {
  const lines = (pick: (row: CollectiveRow, place: 'outOfPlace' | 'inPlace') => number | undefined) => {
    const found = new Map<string, [number, number][]>()
    for (const row of rows) {
      for (const place of ['outOfPlace', 'inPlace'] as const) {
        const value = pick(row, place)
        if (value === undefined) continue
        const variant = [row.dtype, row.op, row.root === null ? null : `root ${row.root}`]
        const name = [...variant, place === 'inPlace' ? 'in place' : 'out of place'].filter(Boolean).join(', ')
        found.set(name, [...(found.get(name) ?? []), [row.bytes, value]])
      }
    }
    return [...found].map(([name, points]) => ({ name, points }))
  }
  return [
    {
      title: 'bus bandwidth',
      unit: 'GB/s',
      logarithmic: false,
      lines: lines((row, place) => row[place]?.busBandwidth),
    },
    { title: 'time', unit: 'µs', logarithmic: true, lines: lines((row, place) => row[place]?.microseconds) },
  ]
}

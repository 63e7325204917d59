import { ncclVersion } from '@shoal/nccl'
import type { CollectiveRow } from '../figures.js'
import type { BenchOptions } from '../options.js'
import { joinParty } from '../party.js'
import { Output } from '../report/output.js'
import type { Diagram } from '../report/plot.js'
import { introduction, reportOf } from '../report/report.js'
import { measureCollective, variantsOf } from './measure.js'
import type { Operation } from './operations.js'
import { collectiveHead, collectiveLine, collectiveSummary } from './print.js'

/** Measures a collective, prints its table and writes its files; the exit status. */
export async function benchCollective(operation: Operation, options: BenchOptions): Promise<number> {
  const party = await joinParty(options)
  try {
    const variants = variantsOf(operation, party.worldSize, options)
    const output = party.isFirst ? await Output.open(options) : undefined
    const library = { name: 'NCCL', version: ncclVersion().toString() }
    output?.print(...introduction(reportOf(party, library, [], options)), ...collectiveHead())
    const rows = await measureCollective(operation, variants, party, options, (row) =>
      output?.print(collectiveLine(row)),
    )
    const { wrong, averageBusBandwidth } = collectiveSummary(rows)
    output?.print(
      `# elements wrong: ${wrong === null ? 'not checked' : wrong === 0 ? '0 OK' : `${wrong} FAILED`}`,
      `# average bus bandwidth: ${averageBusBandwidth.toPrecision(5)} GB/s`,
    )
    await output?.write(
      { ...reportOf(party, library, rows, options), summary: { wrong, averageBusBandwidth } },
      { title: `${operation.name} over ${party.worldSize} ranks`, diagrams: diagramsOf(rows) },
    )
    return wrong === null || wrong === 0 ? 0 : 1
  } finally {
    await party.leave()
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

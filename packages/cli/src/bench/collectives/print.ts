import type { CollectiveRow, Figures } from '../figures.js'
import { typeNames } from '../options.js'
import { type Column, figure, headLines, row } from '../report/columns.js'

const measured: readonly Column[] = [
  { head: 'time', unit: '(us)', width: 8 },
  { head: 'algbw', unit: '(GB/s)', width: 7 },
  { head: 'busbw', unit: '(GB/s)', width: 7 },
  { head: '#wrong', unit: '', width: 6 },
]
const columns: readonly Column[] = [
  { head: 'size', unit: '(B)', width: 12 },
  { head: 'count', unit: '(elements)', width: 13 },
  { head: 'type', unit: '', width: 9 },
  { head: 'redop', unit: '', width: 7 },
  { head: 'root', unit: '', width: 7 },
  ...measured,
  ...measured,
]

/** Returns the lines above the rows, in the format of nccl-tests. */
export function collectiveHead(): string[] {
  const left = row(columns.slice(0, 5), []).length
  const half = row(measured, []).length
  const over = `${' '.repeat(left + 1)}${'out-of-place'.padStart((half + 12) >> 1).padEnd(half)} ${'in-place'.padStart((half + 8) >> 1)}`
  return headLines(columns, over)
}

export function collectiveLine({ bytes, count, dtype, op, root, outOfPlace, inPlace }: CollectiveRow): string {
  return row(columns, [
    String(bytes),
    String(count),
    (typeNames as Readonly<Record<string, string>>)[dtype] ?? dtype,
    op ?? 'none',
    root === null ? '-1' : String(root),
    ...cells(outOfPlace),
    ...cells(inPlace),
  ])
}

function cells(figures: Figures | null): string[] {
  if (figures === null) return measured.map(() => 'N/A')
  const { microseconds, algorithmBandwidth, busBandwidth, wrong } = figures
  return [...[microseconds, algorithmBandwidth, busBandwidth].map(figure), wrong === null ? 'N/A' : String(wrong)]
}

/** Returns the summary below the rows: wrong elements, and the mean bus bandwidth. */
export function collectiveSummary(rows: readonly CollectiveRow[]): {
  wrong: number | null
  averageBusBandwidth: number
} {
  const all = rows.flatMap(({ outOfPlace, inPlace }) => [outOfPlace, inPlace]).filter((one) => one !== null)
  const counted = all.flatMap(({ wrong }) => (wrong === null ? [] : [wrong]))
  return {
    wrong: counted.length === 0 ? null : counted.reduce((sum, value) => sum + value, 0),
    averageBusBandwidth: all.reduce((sum, one) => sum + one.busBandwidth, 0) / Math.max(1, all.length),
  }
}

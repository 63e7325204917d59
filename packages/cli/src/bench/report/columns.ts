/** A cell of a table with columns of fixed width: rows are printed while they come, as nccl-tests do. */
export interface Column {
  readonly head: string
  readonly unit: string
  readonly width: number
}

/** The two lines above a table. */
export function headLines(columns: readonly Column[], title = ''): string[] {
  const line = (pick: (column: Column) => string): string => `#${row(columns, columns.map(pick)).slice(1)}`
  return [...(title === '' ? [] : [`#${title.slice(1)}`]), line(({ head }) => head), line(({ unit }) => unit)]
}

export function row(columns: readonly Column[], cells: readonly string[]): string {
  return columns.map(({ width }, index) => (cells[index] ?? '').padStart(width)).join(' ')
}

/** Microseconds and bandwidths, with as many digits as fit and tell something. */
export function figure(value: number): string {
  if (value >= 10_000) return value.toFixed(0)
  if (value >= 1000) return value.toFixed(1)
  return value.toFixed(2)
}

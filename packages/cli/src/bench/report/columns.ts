/** A column of fixed width: rows are printed one by one, as nccl-tests does. */
export interface Column {
  readonly head: string
  readonly unit: string
  readonly width: number
}

/** Returns the two lines above a table. */
export function headLines(columns: readonly Column[], title = ''): string[] {
  const line = (pick: (column: Column) => string): string => `#${row(columns, columns.map(pick)).slice(1)}`
  return [...(title === '' ? [] : [`#${title.slice(1)}`]), line(({ head }) => head), line(({ unit }) => unit)]
}

export function row(columns: readonly Column[], cells: readonly string[]): string {
  return columns.map(({ width }, index) => (cells[index] ?? '').padStart(width)).join(' ')
}

/** Formats microseconds or bandwidths in at most six characters. */
export function figure(value: number): string {
  if (value >= 10_000) return value.toFixed(0)
  if (value >= 1000) return value.toFixed(1)
  return value.toFixed(2)
}

/** Returns the line below a table with the number of wrong results; null without a check. */
export function wrongLine(what: string, wrong: number | null): string {
  return `# ${what} wrong: ${wrong === null ? 'not checked' : wrong === 0 ? '0 OK' : `${wrong} FAILED`}`
}

/** Formats a figure with at least three digits; `–` if it is not finite. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value >= 1000) return value.toFixed(0)
  return value >= 100 ? value.toFixed(1) : value.toPrecision(3)
}

/** Formats a table: the first column is left-aligned, the others right-aligned. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((cells) => (cells[column] ?? '').length)))
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return all.map((cells) => cells.map(pad).join('  ')).join('\n')
}

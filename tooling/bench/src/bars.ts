/** A figure that has to stay on one side of a limit. */
export interface Bar {
  readonly what: string
  readonly value: number
  readonly limit: number
  readonly unit: string
  /** Which side of the limit is right. */
  readonly side: 'at most' | 'at least'
  readonly met: boolean
  /**
   * The same figure of a second crew in C, found in the same way in the same rounds: what differs from 1 there is the
   * machine's doing. It does not change whether the bar is met.
   */
  readonly ofCAgain?: number
}

/** A figure, and the same one of C against itself where that was measured. */
export interface Figure {
  readonly value: number
  readonly ofCAgain?: number
}

export function atMost(what: string, figure: number | Figure, limit: number, unit = ''): Bar {
  const { value, ...rest } = figureOf(figure)
  return { what, value, ...rest, limit, unit, side: 'at most', met: value <= limit }
}

export function atLeast(what: string, figure: number | Figure, limit: number, unit = ''): Bar {
  const { value, ...rest } = figureOf(figure)
  return { what, value, ...rest, limit, unit, side: 'at least', met: value >= limit }
}

function figureOf(figure: number | Figure): Figure {
  return typeof figure === 'number' ? { value: figure } : figure
}

export function printBars(bars: readonly Bar[]): void {
  if (bars.length === 0) return
  console.log('')
  for (const bar of bars) {
    const again = bar.ofCAgain === undefined ? '' : `; C against itself ${number(bar.ofCAgain)}${bar.unit}`
    console.log(
      `${bar.met ? 'met   ' : 'MISSED'} ${bar.what}: ${number(bar.value)}${bar.unit} (${bar.side} ${bar.limit}${bar.unit}${again})`,
    )
  }
}

/** A figure with as many digits as tell something. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value >= 1000) return value.toFixed(0)
  return value >= 100 ? value.toFixed(1) : value.toPrecision(3)
}

/** Rows as a table: the first column to the left, the others to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  return all
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  '),
    )
    .join('\n')
}

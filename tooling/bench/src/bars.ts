import { number } from '@shoal/cli/bench'
import { type Row, ratioBetween } from './turns.js'

/** A figure and its limit. */
export interface Bar {
  readonly what: string
  readonly value: number
  readonly limit: number
  readonly unit: string
  /** The allowed side of the limit. */
  readonly side: 'at most' | 'at least'
  readonly met: boolean
  /**
   * The same figure for a second copy of the C program, from the same rounds: the noise floor of the machine. Does not
   * affect `met`.
   */
  readonly ofCAgain?: number
}

/** A figure, and the figure of C against itself if it was measured. */
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

/** A bar for the greatest time ratio to C in `rows`, for Shoal or another subject. Empty if there are no rows. */
export function slowest(what: string, rows: readonly Row[], limit: number, subject = 'shoal'): Bar[] {
  const greatest = (name: string): number => Math.max(...rows.map((row) => ratioBetween(row, name, 'C')))
  if (rows.length === 0) return []
  return [atMost(what, { value: greatest(subject), ofCAgain: greatest('C again') }, limit)]
}

/** A bar for the smallest bandwidth ratio to C in `rows`. Empty if there are no rows. */
export function leastBandwidth(what: string, rows: readonly Row[], limit: number): Bar[] {
  const least = (name: string): number => Math.min(...rows.map((row) => ratioBetween(row, 'C', name)))
  if (rows.length === 0) return []
  return [atLeast(what, { value: least('shoal'), ofCAgain: least('C again') }, limit)]
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

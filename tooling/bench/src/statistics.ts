/** The middle value; the mean of the two middle ones of an even number of values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * The median of the ratio inside each two rounds after one another: machines drift from round to round, ratios less so. In
 * one of the two rounds each subject goes first: memory that another process gave back just before is a quarter dearer.
 */
export function medianRatio(ours: readonly number[], theirs: readonly number[]): number {
  const over = (values: readonly number[], round: number): number =>
    (values[round] ?? Number.NaN) + (values.length > 1 ? (values[round + 1] ?? Number.NaN) : 0)
  const ratios = ours.map((_, round) => over(ours, round) / over(theirs, round))
  return median(ours.length > 1 ? ratios.slice(0, -1) : ratios)
}

/** The figures of one subject in one case. */
export interface Series {
  readonly rounds: readonly number[]
  readonly median: number
  readonly least: number
  readonly greatest: number
}

export function series(rounds: readonly number[]): Series {
  return { rounds, median: median(rounds), least: Math.min(...rounds), greatest: Math.max(...rounds) }
}

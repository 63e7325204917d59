/** The middle value; the mean of the two middle ones of an even number of values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * The median over each two rounds after one another of the geometric mean of their ratios: machines drift from round to round,
 * ratios less so. In one of the two rounds each subject goes first: memory that another process gave back just before is a
 * quarter dearer.
 */
export function medianRatio(ours: readonly number[], theirs: readonly number[]): number {
  const ratios = ours.map((value, round) => value / (theirs[round] ?? Number.NaN))
  const pairs = ratios.slice(1).map((ratio, round) => Math.sqrt(ratio * (ratios[round] ?? Number.NaN)))
  return median(pairs.length > 0 ? pairs : ratios)
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

/** The middle value; for an even number of values, the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * For each two successive rounds, takes the geometric mean of their ratios; returns the median of these means. Machines
 * drift from round to round, but ratios drift less. In one of the two rounds each subject runs first, because memory
 * that another process has just freed is a quarter more expensive.
 */
export function medianRatio(ours: readonly number[], theirs: readonly number[]): number {
  return overPairs(
    ours,
    theirs,
    (a, b) => a / b,
    (a, b) => Math.sqrt(a * b),
  )
}

/** The same for differences, with the arithmetic mean of two. */
export function medianDifference(ours: readonly number[], theirs: readonly number[]): number {
  return overPairs(
    ours,
    theirs,
    (a, b) => a - b,
    (a, b) => (a + b) / 2,
  )
}

function overPairs(
  ours: readonly number[],
  theirs: readonly number[],
  compare: (a: number, b: number) => number,
  mean: (a: number, b: number) => number,
): number {
  const compared = ours.map((value, round) => compare(value, theirs[round] ?? Number.NaN))
  const pairs = compared.slice(1).map((value, round) => mean(value, compared[round] ?? Number.NaN))
  return median(pairs.length > 0 ? pairs : compared)
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

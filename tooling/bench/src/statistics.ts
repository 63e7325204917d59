/** The middle value; the mean of the two middle ones of an even number of values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * The median over each two rounds after one another of the geometric mean of their ratios: machines drift from round to
 * round, ratios less so. In one of the two rounds each subject goes first: memory that another process gave back just
 * before is a quarter dearer.
 */
export function medianRatio(ours: readonly number[], theirs: readonly number[]): number {
  return overPairs(
    ours,
    theirs,
    (a, b) => a / b,
    (a, b) => Math.sqrt(a * b),
  )
}

/** The same of their differences, with the mean of two. */
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

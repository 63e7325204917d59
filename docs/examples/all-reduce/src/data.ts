/** Random f32 from -1 to 1. The same seed and rank give the same data in every process, so that all can check all. */
export function randomData(elements: number, seed: number, rank: number): Float32Array<ArrayBuffer> {
  const data = new Float32Array(elements)
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) + Math.imul(rank + 1, 0xc2b2ae35)) | 0
  for (let i = 0; i < elements; i += 1) {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    data[i] = ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 31 - 1
  }
  return data
}

/** What every element of the result should be, and how far from it NCCL may end up. */
export interface Reference {
  readonly sums: Float64Array
  readonly tolerances: Float64Array
}

/**
 * The sums of all ranks' data, in double precision.
 *
 * NCCL adds n values in single precision, in its own order. Each of the n - 1 additions rounds a partial sum, which is
 * at most Σ|x|, by at most u = 2^-24 of it. So the result is within (n - 1)·u·Σ|x| of the exact sum. A thousandth is
 * added for the reference, which rounds by 2^-53, and for rounding errors of rounding errors.
 */
export function referenceFor(elements: number, seed: number, ranks: number): Reference {
  const sums = new Float64Array(elements)
  const tolerances = new Float64Array(elements)
  for (let rank = 0; rank < ranks; rank += 1) {
    const data = randomData(elements, seed, rank)
    for (let i = 0; i < elements; i += 1) {
      const value = data[i] as number
      ;(sums[i] as number) += value
      ;(tolerances[i] as number) += Math.abs(value)
    }
  }
  const factor = (ranks - 1) * 2 ** -24 * 1.001
  for (let i = 0; i < elements; i += 1) (tolerances[i] as number) *= factor
  return { sums, tolerances }
}

export interface Comparison {
  readonly checked: number
  readonly mismatches: number
  /** The first few wrong elements, in words. */
  readonly examples: readonly string[]
}

/** Compares every element; NaN is never right. */
export function check(result: Float32Array, { sums, tolerances }: Reference): Comparison {
  const examples: string[] = []
  let mismatches = 0
  for (let i = 0; i < result.length; i += 1) {
    const error = Math.abs((result[i] as number) - (sums[i] as number))
    const tolerance = tolerances[i] as number
    if (error <= tolerance) continue
    mismatches += 1
    if (examples.length < 3) examples.push(`element ${i} is ${result[i]}, should be ${sums[i]} ± ${tolerance}`)
  }
  return { checked: result.length, mismatches, examples }
}

/** Flips the sign of one element, or makes something of nothing. */
export function corrupt(result: Float32Array): void {
  const index = result.length >> 1
  const value = result[index] as number
  result[index] = value === 0 ? 1 : -value
}

/** What a rank brings: whole numbers, so that sums are exact. `rank.py` has the same rule. */
export function dataOf(rank: number, elements: number, seed: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: elements }, (_, index) => ((index * 7 + rank * 13 + seed) % 101) - 50)
}

/** How many elements are not the sum of what the two ranks brought. */
export function countWrong(result: Float32Array, seed: number): number {
  const [first, second] = [dataOf(0, result.length, seed), dataOf(1, result.length, seed)]
  return result.reduce((wrong, value, index) => {
    return value === (first[index] as number) + (second[index] as number) ? wrong : wrong + 1
  }, 0)
}

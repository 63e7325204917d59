/** How many numbers all ranks work on. */
export const elements = 1000

/** What one rank adds in one step: whole numbers, so that sums are exact in any order. */
export function contribution(rank: number, step: number): Float64Array<ArrayBuffer> {
  return Float64Array.from({ length: elements }, (_, index) => ((index * 31 + rank * 17 + step * 7) % 1009) - 500)
}

/** Progress of a rank: its state after the steps so far, and the members of each step. */
export interface Progress {
  readonly state: Float64Array
  /** For each step done, the ranks of the first job that took part. */
  readonly members: readonly (readonly number[])[]
}

export const start: Progress = { state: new Float64Array(elements), members: [] }

export function advance({ state, members }: Progress, sum: ArrayLike<number>, ranks: readonly number[]): Progress {
  return { state: state.map((value, index) => value + (sum[index] as number)), members: [...members, ranks] }
}

/** Counts the elements that differ from the result of the ranks that took part. */
export function countWrong({ state, members }: Progress): number {
  const expected = new Float64Array(elements)
  members.forEach((ranks, step) => {
    for (const rank of ranks) {
      const added = contribution(rank, step)
      for (let i = 0; i < elements; i += 1) expected[i] = (expected[i] as number) + (added[i] as number)
    }
  })
  return expected.filter((value, index) => value !== state[index]).length
}

export function encode({ state, members }: Progress): Uint8Array {
  return Buffer.from(JSON.stringify({ state: [...state], members }))
}

export function decode(bytes: Uint8Array): Progress {
  const { state, members } = JSON.parse(Buffer.from(bytes).toString()) as { state: number[]; members: number[][] }
  return { state: Float64Array.from(state), members }
}

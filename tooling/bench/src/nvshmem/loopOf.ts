import type { Loop } from '@shoal/cli/bench'

/** The cases of a PE. Each creates a loop for messages of a given size in bytes. */
export type Cases<Result = void> = Readonly<Record<string, (bytes: number) => Loop<Result>>>

/** Parses `CASE BYTES ITERATIONS WARMUPS` into the iterations, the warm-ups and the loop. */
export function loopOf<Result>(cases: Cases<Result>, [test = '', ...numbers]: readonly string[]) {
  const loopFor = cases[test]
  if (loopFor === undefined) throw new Error(`no case ${test}`)
  const [bytes = 0, iterations = 0, warmUps = 0] = numbers.map(Number)
  return [iterations, warmUps, loopFor(bytes)] as const
}

import type { Loop } from '@shoal/cli/bench'

/** The cases of a PE: each makes its loop for messages of so many bytes. */
export type Cases<Result = void> = Readonly<Record<string, (bytes: number) => Loop<Result>>>

/** What `CASE BYTES ITERATIONS WARMUPS` asks for: iterations, warm-ups, and the loop. */
export function loopOf<Result>(cases: Cases<Result>, [test = '', ...numbers]: readonly string[]) {
  const loopFor = cases[test]
  if (loopFor === undefined) throw new Error(`no case ${test}`)
  const [bytes = 0, iterations = 0, warmUps = 0] = numbers.map(Number)
  return [iterations, warmUps, loopFor(bytes)] as const
}

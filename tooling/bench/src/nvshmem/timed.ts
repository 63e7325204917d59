import { type Loop, timeOf, timeOfAwaited } from '@shoal/cli/bench'

/** The cases of a PE: each makes its loop for messages of so many bytes. */
export type Cases<Result = void> = Readonly<Record<string, (bytes: number) => Loop<Result>>>

/** Answers `CASE BYTES ITERATIONS WARMUPS` with the microseconds of one. */
export function timed(cases: Cases): (words: readonly string[]) => number {
  return (words) => timeOf(...requestOf(cases, words))
}

/** The same for calls that are awaited. */
export function timedAwaited(cases: Cases<Promise<void>>): (words: readonly string[]) => Promise<number> {
  return (words) => timeOfAwaited(...requestOf(cases, words))
}

function requestOf<Result>(cases: Cases<Result>, [test = '', ...numbers]: readonly string[]) {
  const loopFor = cases[test]
  if (loopFor === undefined) throw new Error(`no case ${test}`)
  const [bytes = 0, iterations = 0, warmUps = 0] = numbers.map(Number)
  return [iterations, warmUps, loopFor(bytes)] as const
}

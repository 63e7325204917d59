import { timeOf, timeOfAwaited } from '@shoal/cli/bench'

/** Does a case `count` times on messages of so many bytes, and waits for what it queued. */
export type SizedLoop<Result = void> = (bytes: number, count: number) => Result

/** Answers `CASE BYTES ITERATIONS WARMUPS` with the microseconds of one. */
export function timed(loops: Readonly<Record<string, SizedLoop>>): (words: readonly string[]) => number {
  return (words) => {
    const { loop, bytes, iterations, warmUps } = requestOf(loops, words)
    return timeOf(iterations, warmUps, (count) => loop(bytes, count))
  }
}

/** The same for calls that are awaited. */
export function timedAwaited(
  loops: Readonly<Record<string, SizedLoop<Promise<void>>>>,
): (words: readonly string[]) => Promise<number> {
  return (words) => {
    const { loop, bytes, iterations, warmUps } = requestOf(loops, words)
    return timeOfAwaited(iterations, warmUps, (count) => loop(bytes, count))
  }
}

function requestOf<L>(loops: Readonly<Record<string, L>>, [test = '', ...numbers]: readonly string[]) {
  const loop = loops[test]
  if (loop === undefined) throw new Error(`no case ${test}`)
  const [bytes = 0, iterations = 0, warmUps = 0] = numbers.map(Number)
  return { loop, bytes, iterations, warmUps }
}

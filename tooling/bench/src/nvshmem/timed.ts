/** Does the case `count` times, and waits for what it queued. */
export type Loop<Result = void> = (bytes: number, count: number) => Result

/** Answers `CASE BYTES ITERATIONS WARMUPS` with the microseconds of one. */
export function timed(loops: Readonly<Record<string, Loop>>): (words: readonly string[]) => number {
  return (words) => {
    const { loop, bytes, iterations, warmUps } = requestOf(loops, words)
    loop(bytes, warmUps)
    const start = process.hrtime.bigint()
    loop(bytes, iterations)
    return Number(process.hrtime.bigint() - start) / 1000 / iterations
  }
}

/** The same for what is awaited. */
export function timedAwaiting(
  loops: Readonly<Record<string, Loop<Promise<void>>>>,
): (words: readonly string[]) => Promise<number> {
  return async (words) => {
    const { loop, bytes, iterations, warmUps } = requestOf(loops, words)
    await loop(bytes, warmUps)
    const start = process.hrtime.bigint()
    await loop(bytes, iterations)
    return Number(process.hrtime.bigint() - start) / 1000 / iterations
  }
}

function requestOf<L>(loops: Readonly<Record<string, L>>, [test = '', ...numbers]: readonly string[]) {
  const loop = loops[test]
  if (loop === undefined) throw new Error(`no case ${test}`)
  const [bytes = 0, iterations = 0, warmUps = 0] = numbers.map(Number)
  return { loop, bytes, iterations, warmUps }
}

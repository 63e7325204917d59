/** Makes `count` calls and waits for what they queued. */
export type Loop<Result = void> = (count: number) => Result

/** Microseconds of one of `count` calls, after so many that are not timed. */
export function timeOf(count: number, warmUps: number, loop: Loop): number {
  if (warmUps > 0) loop(warmUps)
  const start = process.hrtime.bigint()
  loop(count)
  return Number(process.hrtime.bigint() - start) / 1000 / count
}

/** The same of calls that are awaited. */
export async function timeOfAwaited(count: number, warmUps: number, loop: Loop<Promise<unknown>>): Promise<number> {
  if (warmUps > 0) await loop(warmUps)
  const start = process.hrtime.bigint()
  await loop(count)
  return Number(process.hrtime.bigint() - start) / 1000 / count
}

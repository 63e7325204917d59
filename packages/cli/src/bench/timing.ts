/** Makes `count` calls and waits for what they queued. */
export type Loop<Result = void> = (count: number) => Result

/** A loop that makes the call `count` times; `wait` waits for all of them. */
export function repeat(call: (i: number) => unknown, wait: () => unknown = () => undefined): Loop {
  return (count) => {
    for (let i = 0; i < count; i += 1) call(i)
    wait()
  }
}

/** A loop that awaits each call. */
export function repeatAwaited(call: () => Promise<unknown>): Loop<Promise<void>> {
  return async (count) => {
    for (let i = 0; i < count; i += 1) await call()
  }
}

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

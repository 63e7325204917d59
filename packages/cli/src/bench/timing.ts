/** Makes `count` calls and waits for the work that they queued. */
export type Loop<Result = void> = (count: number) => Result

/** Returns a loop that makes the call `count` times and then calls `wait`. */
export function repeat(call: (i: number) => unknown, wait: () => unknown = () => undefined): Loop {
  return (count) => {
    for (let i = 0; i < count; i += 1) call(i)
    wait()
  }
}

/** Returns a loop that awaits each call. */
export function repeatAwaited(call: () => Promise<unknown>): Loop<Promise<void>> {
  return async (count) => {
    for (let i = 0; i < count; i += 1) await call()
  }
}

/** Returns the microseconds per call over `count` calls, after `warmUps` untimed calls. */
export function timeOf(count: number, warmUps: number, loop: Loop): number {
  if (warmUps > 0) loop(warmUps)
  const start = process.hrtime.bigint()
  loop(count)
  return Number(process.hrtime.bigint() - start) / 1000 / count
}

/** Like {@link timeOf}, for awaited calls. */
export async function timeOfAwaited(count: number, warmUps: number, loop: Loop<Promise<unknown>>): Promise<number> {
  if (warmUps > 0) await loop(warmUps)
  const start = process.hrtime.bigint()
  await loop(count)
  return Number(process.hrtime.bigint() - start) / 1000 / count
}

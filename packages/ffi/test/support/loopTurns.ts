/** Holds the thread, as work of a program does between two awaits. */
export function holdThread(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/**
 * Whether the event loop turns while calls are awaited one after the other, each with 3 ms of other work behind it. Of
 * these, the second is the first one that finds the loop due; a third one makes up for a call that turned the loop
 * itself before it settled.
 */
export async function loopTurns(call: () => PromiseLike<unknown>): Promise<boolean> {
  let hasTurned = false
  setImmediate(() => {
    hasTurned = true
  })
  for (let count = 0; count < 3 && !hasTurned; count += 1) {
    await call()
    holdThread(3)
  }
  return hasTurned
}

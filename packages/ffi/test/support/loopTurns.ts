/** Blocks the thread, like a program's work between two awaits. */
export function holdThread(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/**
 * Whether the event loop turns during several awaited calls, each followed by 3 ms of other work. The second of these
 * is the first that finds the loop due. The third compensates for a call that turned the loop itself.
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

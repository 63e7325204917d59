/** Node's own timers, because a test with fake global timers must not stop the completion of GPU work. */
const { setImmediate, setTimeout } = globalThis

/** Calls back in the next turn of the event loop (`setImmediate`). */
export const inNextTurn: (callback: () => void) => NodeJS.Immediate = setImmediate

/** Resolves in the next event loop turn, or after `delay` milliseconds. */
export function nextTurn(delay?: number): Promise<void> {
  return new Promise((resolve) => void (delay === undefined ? setImmediate(resolve) : setTimeout(resolve, delay)))
}

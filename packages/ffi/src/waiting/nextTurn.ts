/**
 * Node's own: a test that has put timers of its own in place of the global ones does not keep work of the GPU from
 * ending.
 */
const { setImmediate, setTimeout } = globalThis

/** Calls back in the next turn of the event loop (`setImmediate`). */
export const inNextTurn: (callback: () => void) => NodeJS.Immediate = setImmediate

/** The next turn of the event loop, or one that comes after so many milliseconds. */
export function nextTurn(delay?: number): Promise<void> {
  return new Promise((resolve) => void (delay === undefined ? setImmediate(resolve) : setTimeout(resolve, delay)))
}

import { onTestFinished } from 'vitest'

/** Returns a function that counts the timers started since then that are still open, without those of Vitest. */
export function openTimers(): () => number {
  const { setTimeout: set, clearTimeout: clear } = globalThis
  const open = new Set<unknown>()
  globalThis.setTimeout = ((work: (...words: unknown[]) => void, ...rest: [number, ...unknown[]]) => {
    const timer = set(
      (...words: unknown[]) => {
        open.delete(timer)
        work(...words)
      },
      ...rest,
    )
    open.add(timer)
    return timer
  }) as typeof setTimeout
  globalThis.clearTimeout = ((timer) => {
    open.delete(timer)
    clear(timer)
  }) as typeof clearTimeout
  onTestFinished(() => void Object.assign(globalThis, { setTimeout: set, clearTimeout: clear }))
  return () => open.size
}

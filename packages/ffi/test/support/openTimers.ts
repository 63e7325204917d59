import { onTestFinished } from 'vitest'

/** How many timers are open that have been started since, in the present test. Those of Vitest itself do not count. */
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

import { fstatSync } from 'node:fs'

/** Milliseconds between two looks. */
const interval = 100

/**
 * Calls back once nobody reads a pipe or a socket any more, until the signal fires. A write would tell, but may never
 * come.
 */
export async function watchHangUp(descriptor: number, signal: AbortSignal, onHangUp: () => void): Promise<void> {
  const status = fstatSync(descriptor)
  if (!status.isFIFO() && !status.isSocket()) return
  // Only now: a terminal and a file need no addon.
  const { isHungUp } = await import('@shoal/ffi')
  isHungUp(descriptor)
  const timer = setInterval(() => {
    if (!signal.aborted && !isHungUp(descriptor)) return
    clearInterval(timer)
    if (!signal.aborted) onHangUp()
  }, interval)
  timer.unref()
}

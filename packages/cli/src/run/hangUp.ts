import { fstatSync } from 'node:fs'

/** Milliseconds between two polls. */
const interval = 100

/**
 * Calls back when the readers of a pipe or socket are gone, until the signal fires.
 *
 * A write would fail too, but the program may never write.
 */
export async function watchHangUp(descriptor: number, signal: AbortSignal, onHangUp: () => void): Promise<void> {
  const status = fstatSync(descriptor)
  if (!status.isFIFO() && !status.isSocket()) return
  // Loaded here, because a terminal and a file need no addon.
  const { isHungUp } = await import('@shoal/ffi')
  isHungUp(descriptor)
  const timer = setInterval(() => {
    if (!signal.aborted && !isHungUp(descriptor)) return
    clearInterval(timer)
    if (!signal.aborted) onHangUp()
  }, interval)
  timer.unref()
}

const hubs = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `listener` once when `signal` fires, at once where it has. Returns what takes it back. One signal, such as that of
 * a job, may serve many communicators and waits; it gets a single listener, because Node warns of more than ten.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => undefined
  if (signal.aborted) {
    listener()
    return () => undefined
  }
  const listeners = hubs.get(signal) ?? openHub(signal)
  // Not the function itself, which may be given twice.
  const entry = (): void => listener()
  listeners.add(entry)
  return () => listeners.delete(entry)
}

function openHub(signal: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>()
  hubs.set(signal, listeners)
  signal.addEventListener(
    'abort',
    () => {
      for (const listener of [...listeners]) listener()
    },
    { once: true },
  )
  return listeners
}

import { optionalSignal, requireFunction } from '@shoal/types'

interface Listeners {
  readonly calls: Set<() => void>
  /** Removes the single listener from the signal. */
  readonly leave: () => void
}

const listening = new WeakMap<AbortSignal, Listeners>()

/**
 * Calls `call` once when the signal aborts, or immediately if it has aborted.
 *
 * The returned function cancels this. All callers share one listener per signal, because Node warns of a leak above
 * ten.
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  optionalSignal(signal, 'onAbort')
  requireFunction(call, 'onAbort', 'call')
  if (signal === undefined) return () => undefined
  if (signal.aborted) {
    call()
    return () => undefined
  }
  const listeners = listening.get(signal) ?? listen(signal)
  listeners.calls.add(call)
  return () => {
    if (!listeners.calls.delete(call) || listeners.calls.size > 0) return
    listeners.leave()
  }
}

function listen(signal: AbortSignal): Listeners {
  const calls = new Set<() => void>()
  const leave = (): void => {
    signal.removeEventListener('abort', callAll)
    listening.delete(signal)
  }
  const callAll = (): void => {
    leave()
    for (const call of [...calls]) call()
  }
  signal.addEventListener('abort', callAll)
  const listeners = { calls, leave }
  listening.set(signal, listeners)
  return listeners
}

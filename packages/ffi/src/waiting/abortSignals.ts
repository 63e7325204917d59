import { optionalSignal, requireFunction } from '@shoal/types'

interface Listeners {
  readonly calls: Set<() => void>
  /** Takes the one listener off the signal. */
  readonly leave: () => void
}

const listening = new WeakMap<AbortSignal, Listeners>()

/**
 * Calls `call` once when the signal is aborted, at once where it has been, unless the function it returns was called
 * before. However many listen to a signal here, the signal has one listener: of more than ten Node warns as of a leak.
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

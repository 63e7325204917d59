import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'

const waiting = 'another thread or process'

/** Runs one after the other what is asked of one object. */
export function inTurn<T>(
  turns: WeakMap<object, Promise<unknown>>,
  channel: object,
  run: () => Promise<T>,
): Promise<T> {
  const done = (turns.get(channel) ?? Promise.resolve()).then(run)
  turns.set(
    channel,
    done.catch(() => undefined),
  )
  return done
}

/** Runs what ends with the limits of a wait, or when `end` is called, with the error that it was ended by. */
export async function limited<T>(
  { timeout, signal }: WaitOptions,
  run: (signal: AbortSignal, end: (error: Error) => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  let reason: Error | undefined
  const end = (error: Error): void => {
    reason ??= error
    controller.abort(error)
  }
  const aborted = (): void => end(new AbortedError({ operation: waiting, cause: signal?.reason }))
  const timer =
    timeout === undefined
      ? undefined
      : setTimeout(() => end(new TimeoutError({ operation: waiting, timeout })), timeout)
  if (signal?.aborted === true) aborted()
  signal?.addEventListener('abort', aborted, { once: true })
  try {
    controller.signal.throwIfAborted()
    return await run(controller.signal, end)
  } catch (error) {
    throw reason ?? error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', aborted)
  }
}

import { onAbort } from '@shoal/ffi'
import { holdEventLoop } from '@shoal/ffi/calls'
import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'

/** Runs one after the other what is asked of one object. A call that is ended before its turn is left out. */
export async function inTurn<T>(
  turns: WeakMap<object, Promise<void>>,
  channel: object,
  signal: AbortSignal,
  run: () => Promise<T>,
): Promise<T> {
  const before = turns.get(channel) ?? Promise.resolve()
  let finish = (): void => undefined
  const own = new Promise<void>((resolve) => {
    finish = resolve
  })
  // Whoever comes behind a call that was left out still waits for those before it.
  turns.set(
    channel,
    before.then(() => own),
  )
  try {
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      void before.then(resolve)
    })
    signal.throwIfAborted()
    return await run()
  } finally {
    finish()
  }
}

/**
 * Runs what ends with the limits of a wait, or when `end` is called, with the error that it was ended by. The process
 * stays alive until then: not every channel keeps it so.
 * @param api the function that was called, for errors.
 */
export async function limited<T>(
  { timeout, signal }: WaitOptions,
  api: string,
  run: (signal: AbortSignal, end: (error: Error) => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  let reason: Error | undefined
  const end = (error: Error): void => {
    reason ??= error
    controller.abort(error)
  }
  const release = holdEventLoop(undefined)
  const timer =
    timeout === undefined
      ? undefined
      : setTimeout(() => end(new TimeoutError({ operation: api, timeout, ofDevice: false })), timeout)
  const stopListening = onAbort(signal, () =>
    end(new AbortedError({ operation: api, ofDevice: false, cause: signal?.reason })),
  )
  try {
    controller.signal.throwIfAborted()
    return await run(controller.signal, end)
  } catch (error) {
    throw reason ?? error
  } finally {
    release()
    clearTimeout(timer)
    stopListening()
  }
}

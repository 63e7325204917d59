import { onAbort } from '@shoal/ffi'
import { holdEventLoop } from '@shoal/ffi/calls'
import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'

/** Runs calls for the same object one after the other. Skips a call that is aborted before it starts. */
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
  // A call after a skipped one still waits for the calls before it.
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
 * Runs work with the limits of a wait. Calling `end` rejects with the given error. The process stays alive until the
 * work ends, because not every channel keeps it alive.
 * @param api the calling function, for errors
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

import { AbortedError } from '@shoal/types'

/** Options that end a wait for a compiler. */
export interface Abortable {
  /**
   * Rejects the promise with `AbortedError`.
   *
   * A compilation that has not started is cancelled. A compilation that has started cannot be stopped: it continues on
   * its thread, and its result is cached if there is a cache.
   */
  readonly signal?: AbortSignal | undefined
}

/** Starts work and waits for it until the signal fires; `discard` gets a later result. */
export async function untilAborted<T>(
  start: () => Promise<T>,
  signal: AbortSignal | undefined,
  operation: string,
  discard: (late: T) => void = () => undefined,
): Promise<T> {
  if (signal === undefined) return start()
  const aborted = (): AbortedError => new AbortedError({ operation, cause: signal.reason })
  if (signal.aborted) throw aborted()
  const work = start()
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(aborted())
      // The caller no longer waits for the work, so ignore its errors.
      work.then(discard).catch(() => undefined)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
